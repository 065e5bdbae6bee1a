/** Readers that wait for the next delivery. */

/** Readers that wait for one receiver; beyond them the one that waits longest is answered. */
export const LONG_POLLS_MAX = 100;

type Resume = (isWorthALook: boolean) => void;

export class LongPolls {
  /** In the order in which they came. */
  readonly #waiting = new Set<Resume>();

  /** Resolves with true after an arrival; with false when the time is over, or a newer reader needs the place. */
  waitForDelivery(waitMs: number): Promise<boolean> {
    // A reader whose client is gone is not heard of again: it must not keep others out.
    const [longest] = this.#waiting;
    if (longest && this.#waiting.size >= LONG_POLLS_MAX) longest(false);
    return new Promise((resolve) => {
      const answer: Resume = (isWorthALook) => {
        clearTimeout(timer);
        this.#waiting.delete(answer);
        resolve(isWorthALook);
      };
      const timer = setTimeout(answer, waitMs, false);
      this.#waiting.add(answer);
    });
  }

  notifyAll(): void {
    for (const answer of [...this.#waiting]) answer(true);
  }
}
