/**
 * The memory of workerd for WebSocket messages that are not complete: workerd stores up to 32 MiB of each until its last byte
 * arrives, and has no bound for all of them. So their bytes are counted here, and each source may hold as much as stays free.
 */
import { FairShare, type Share } from "../../../shared/fair-share.ts";

export class MessageMemory {
  readonly #total: FairShare;
  /** Of the sources that hold bytes. */
  readonly #shares = new Map<string, Share>();

  constructor(maxBytes: number) {
    this.#total = new FairShare(maxBytes);
  }

  /** @param source connections of one source share its claim. */
  createReservation(source: string): MessageReservation {
    return new MessageReservation({
      takeShare: () => {
        let share = this.#shares.get(source);
        if (!share) this.#shares.set(source, (share = this.#total.createShare()));
        return share;
      },
      returnShare: (share) => {
        if (share.held === 0) this.#shares.delete(source);
      },
    });
  }
}

interface Source {
  takeShare: () => Share;
  returnShare: (share: Share) => void;
}

/** What one connection has reserved of the memory of its source. */
export class MessageReservation {
  readonly #source: Source;
  #share: Share | undefined;
  #bytes = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  /** @returns false when the source may not hold so much. Then the message must be given up. */
  resize(bytes: number): boolean {
    if (bytes === this.#bytes) return true;
    if (bytes < this.#bytes) this.clear();
    const share = (this.#share ??= this.#source.takeShare());
    if (!share.take(bytes - this.#bytes)) {
      this.clear();
      return false;
    }
    this.#bytes = bytes;
    return true;
  }

  /** The message is complete, or the connection has ended. */
  clear(): void {
    if (!this.#share) return;
    this.#share.add(-this.#bytes);
    this.#source.returnShare(this.#share);
    this.#share = undefined;
    this.#bytes = 0;
  }
}
