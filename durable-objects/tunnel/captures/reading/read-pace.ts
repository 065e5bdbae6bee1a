/** Divides a long read of captures into slices, between which other events are handled: visitors must not wait for a reader. */
import { edgeGarbageCollection } from "../../../../shared/garbage-collection.ts";

/** Read in one slice: some 5 ms, at most 10 ms, however many captures it holds. */
const READ_SLICE_BYTES = 512 * 1024;
/** What a stored value and a record cost besides their sizes. */
const VALUE_BYTES = 1_024;
/** The time from one slice to the next, of all reads together: about half of it is left to visitors. */
export const SLICE_INTERVAL_MS = 10;
/** An object waits no longer for its turn, however many others there are. */
export const TURN_WAIT_MAX_MS = 10_000;

/** The objects of an isolate whose captures are read take turns. */
export class ReadTurns {
  #nextAtMs = 0;

  /** @returns how long an object waits until its next slice, in milliseconds. */
  take(nowMs: number): number {
    const waitMs = Math.min(Math.max(0, this.#nextAtMs - nowMs), TURN_WAIT_MAX_MS);
    this.#nextAtMs = nowMs + waitMs + SLICE_INTERVAL_MS;
    return waitMs;
  }
}

const isolateTurns = new ReadTurns();

/** The reads of one object. They share its turns: a member may begin very many, which must not delay those of others. */
export class ReadQueue {
  readonly #turns: ReadTurns;
  #last: Promise<void> = Promise.resolve();

  constructor(turns = isolateTurns) {
    this.#turns = turns;
  }

  /** Resolves when the next slice may be read, for one caller after another. */
  waitForTurn(): Promise<void> {
    this.#last = this.#last.then(() => scheduler.wait(this.#turns.take(Date.now())));
    return this.#last;
  }
}

export class ReadPace {
  readonly #queue: ReadQueue;
  #bytes = 0;

  constructor(queue: ReadQueue) {
    this.#queue = queue;
  }

  /** Called with the size of each stored value that was read. */
  add(bytes: number): void {
    this.#bytes += VALUE_BYTES + bytes;
  }

  get isSliceComplete(): boolean {
    return this.#bytes >= READ_SLICE_BYTES;
  }

  /** Returns at once within a slice. */
  async rest(): Promise<void> {
    if (!this.isSliceComplete) return;
    edgeGarbageCollection.countRead(this.#bytes);
    this.#bytes = 0;
    await this.#queue.waitForTurn();
  }
}
