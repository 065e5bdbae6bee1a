/** Divides a long read of captures into slices, between which other events are handled: visitors must not wait for a reader. */
import { edgeGarbageCollection } from "../../../../shared/garbage-collection.ts";

/** Read in one slice: some 5 ms, at most 10 ms, however many captures it holds. */
const READ_SLICE_BYTES = 512 * 1024;
/** What a stored value and a record cost besides their sizes. */
const VALUE_BYTES = 1_024;

export class ReadPace {
  #bytes = 0;

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
    await scheduler.wait(0);
  }
}
