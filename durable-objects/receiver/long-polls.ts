/** Readers that wait for the next delivery. */

/** Readers of one receiver that may wait at a time; one more ends the longest wait. */
export const LONG_POLLS_MAX = 100;

type Resume = (hasArrived: boolean) => void;

export class LongPolls {
  /** The longest wait first. */
  readonly #waiting = new Set<Resume>();

  /** @returns true after a delivery; false when the time has passed or a newer reader takes the place. */
  waitForDelivery(waitMs: number): Promise<boolean> {
    // A client that disconnects is not reported here: its reader must not keep others out.
    const [longest] = this.#waiting;
    if (longest && this.#waiting.size >= LONG_POLLS_MAX) longest(false);
    return new Promise((resolve) => {
      const resume: Resume = (hasArrived) => {
        clearTimeout(timer);
        this.#waiting.delete(resume);
        resolve(hasArrived);
      };
      const timer = setTimeout(resume, waitMs, false);
      this.#waiting.add(resume);
    });
  }

  notifyAll(): void {
    for (const resume of [...this.#waiting]) resume(true);
  }
}
