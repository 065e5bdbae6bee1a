/**
 * Bounds the memory that the connections or requests of many sources hold together: each source may hold as much as stays
 * free, so that one takes at most half.
 */
import { FairShare, type Share } from "./fair-share.ts";

export class SourceMemory {
  readonly #total: FairShare;
  /** The shares of the sources that hold bytes. */
  readonly #shares = new Map<string, Share>();

  constructor(maxBytes: number) {
    this.#total = new FairShare(maxBytes);
  }

  /** @param source such as a group of addresses, whose reservations share its claim. */
  createReservation(source: string): MemoryReservation {
    return new MemoryReservation({
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

/** The part of its source's memory that one holder has reserved. */
export class MemoryReservation {
  readonly #source: Source;
  #share: Share | undefined;
  #bytes = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  /** @returns false when the source may not hold that much. The reservation is then empty. */
  resize(bytes: number): boolean {
    const added = bytes - this.#bytes;
    if (added === 0) return true;
    const share = (this.#share ??= this.#source.takeShare());
    // Other sources may have taken so much since then that this one may not keep what it holds. It may still shrink.
    if (added < 0) share.add(added);
    else if (!share.take(added)) {
      this.clear();
      return false;
    }
    this.#bytes = bytes;
    return true;
  }

  /** Returns all of it. */
  clear(): void {
    if (!this.#share) return;
    this.#share.add(-this.#bytes);
    this.#source.returnShare(this.#share);
    this.#share = undefined;
    this.#bytes = 0;
  }
}
