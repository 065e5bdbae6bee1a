/** Captures that are in memory only: short ones that have ended, and long-lived ones that have changed. */
import type { FinalizedCapture } from "./page.ts";
import type { Recording } from "./recording.ts";

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

  /** The memory that the short ones hold. */
  get finalizedBytes(): number {
    return this.#finalizedBytes;
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
