/** Captures that are in memory only: short ones that have ended, and long-lived ones that have changed. */
import { CAPTURE_PAGE_MAX_EXCHANGES } from "./capture-store.ts";
import type { FinalizedCapture } from "./page.ts";
import type { Recording } from "./recording.ts";

/** Short captures that hold this much memory are written without waiting for the end of the interval. */
export const FINALIZED_WRITE_BYTES = 128 * 1024;
/** And this much, without waiting for a slow disk. */
const FINALIZED_WRITE_MAX_BYTES = 4 * FINALIZED_WRITE_BYTES;

/** `ended`: without those that are still open. */
export type UnwrittenPart = "all" | "ended";

export class UnwrittenCaptures {
  #finalized: FinalizedCapture[] = [];
  #endedLongLived: Recording[] = [];
  #finalizedBytes = 0;
  readonly #changed = new Set<Recording>();

  get count(): number {
    return this.#finalized.length + this.#endedLongLived.length + this.#changed.size;
  }

  /** As many as are worth a write before the interval ends. */
  get isPageful(): boolean {
    return (
      this.count >= CAPTURE_PAGE_MAX_EXCHANGES || this.#finalizedBytes >= FINALIZED_WRITE_BYTES
    );
  }

  /** Too many to wait for a slow disk. */
  get isLarge(): boolean {
    return this.#finalizedBytes >= FINALIZED_WRITE_MAX_BYTES;
  }

  /** @param recording a long-lived one that is open. */
  addChanged(recording: Recording): void {
    this.#changed.add(recording);
  }

  addEnded(recording: Recording): void {
    this.#changed.delete(recording);
    if (recording.isLongLived) {
      this.#endedLongLived.push(recording);
      return;
    }
    this.#finalized.push(recording.finalize());
    this.#finalizedBytes += recording.bodyBytes + recording.headBytes;
  }

  /** Returns the captures of this part, and forgets them. */
  take(part: UnwrittenPart): { finalized: FinalizedCapture[]; longLived: Recording[] } {
    const finalized = this.#finalized;
    const longLived = this.#endedLongLived;
    this.#finalized = [];
    this.#finalizedBytes = 0;
    this.#endedLongLived = [];
    if (part === "all") {
      longLived.unshift(...this.#changed);
      this.#changed.clear();
    }
    return { finalized, longLived };
  }
}
