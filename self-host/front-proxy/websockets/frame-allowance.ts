/** Whether the frames of a WebSocket may go on to workerd: sources take turns when many arrive. */
import type { FairQueue, QueuedItem } from "../queue/fair-queue.ts";

export class FrameAllowance {
  readonly #queue: FairQueue;
  readonly #source: string;
  readonly #resume: () => void;
  /** The place of the next frame, which may not have arrived yet. */
  #place: QueuedItem | undefined;
  #isUsedUp = false;

  /** @param resume called when the next frame may pass after `take` returned false. */
  constructor(queue: FairQueue, source: string, resume: () => void) {
    this.#queue = queue;
    this.#source = source;
    this.#resume = resume;
  }

  /** Whether the next frame has to wait. */
  get isUsedUp(): boolean {
    return this.#isUsedUp;
  }

  /** A frame has passed. @returns whether the next one may pass too. */
  take(): boolean {
    let isSent = false;
    this.#place = this.#queue.add({
      bytes: 0,
      findSource: () => this.#source,
      send: () => {
        isSent = true;
        if (this.#isUsedUp) this.#continue();
      },
    });
    this.#isUsedUp = !isSent;
    return isSent;
  }

  /** The connection has ended. */
  end(): void {
    this.#place?.end();
  }

  #continue(): void {
    this.#isUsedUp = false;
    this.#resume();
  }
}
