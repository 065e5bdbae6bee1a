/** The body of a visitor's request, from the wire's frames to the local server. */
import { Readable } from "node:stream";
import { STREAM_WINDOW_BYTES } from "../../protocol/limits.ts";
import { ReceiveWindow } from "../../protocol/wire/flow-control.ts";

export class RequestBody {
  readonly stream: Readable;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  readonly #queue: Uint8Array[] = [];
  readonly #sendCredit: (bytes: number) => void;
  #isComplete = false;
  /** The request reads, and the queue had nothing for it. */
  #isWaiting = false;

  constructor(sendCredit: (bytes: number) => void) {
    this.#sendCredit = sendCredit;
    this.stream = new Readable({ read: () => this.#push() });
    // The request reports its errors; without a listener here they would end the process.
    this.stream.on("error", () => undefined);
  }

  /** @returns false when the tunnel sent more than the window allows. */
  receive(payload: Uint8Array, isLast: boolean): boolean {
    if (this.#isComplete) return true;
    if (!this.#window.recordReceived(payload.byteLength)) return false;
    if (payload.byteLength > 0) this.#queue.push(payload);
    if (isLast) {
      this.#isComplete = true;
      this.#grant(this.#window.end());
    }
    if (this.#isWaiting) this.#push();
    return true;
  }

  destroy(): void {
    this.stream.destroy();
  }

  /** Passes on one chunk, whose bytes are credited as it leaves the queue. */
  #push(): void {
    const chunk = this.#queue.shift();
    this.#isWaiting = chunk === undefined && !this.#isComplete;
    if (chunk === undefined) {
      if (this.#isComplete) this.stream.push(null);
      return;
    }
    this.stream.push(chunk);
    this.#grant(this.#window.recordConsumed(chunk.byteLength));
  }

  #grant(bytes: number): void {
    if (bytes > 0) this.#sendCredit(bytes);
  }
}
