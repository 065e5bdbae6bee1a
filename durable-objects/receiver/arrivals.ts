/** Readers that wait for the next delivery. */
import { LONG_POLLS_MAX } from "../../protocol/limits/receivers.ts";

export class Arrivals {
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();

  /** Resolves with the next arrival, and when the time is over. */
  next(waitMs: number): Promise<void> {
    // A reader whose client is gone is not heard of again: it must not keep others out.
    const [longest] = this.#waiting;
    if (longest && this.#waiting.size >= LONG_POLLS_MAX) longest();
    return new Promise((resolve) => {
      const answer = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(answer);
        resolve();
      };
      const timer = setTimeout(answer, waitMs);
      this.#waiting.add(answer);
    });
  }

  announce(): void {
    for (const answer of [...this.#waiting]) answer();
  }
}
