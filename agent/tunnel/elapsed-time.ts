/**
 * How long ago something happened, on a machine that may have slept, and whose clock may be set. The wall clock counts the time
 * that the machine slept, which `performance.now()` does not on all systems. After the clock was set back, `performance.now()`
 * still counts what has passed.
 */
export class ElapsedTime {
  #wallMs = Date.now();
  #steadyMs = performance.now();

  /** It happens again, now. */
  restart(): void {
    this.#wallMs = Date.now();
    this.#steadyMs = performance.now();
  }

  /** Milliseconds since it happened; more if the clock was set forward. */
  get ms(): number {
    return Math.max(Date.now() - this.#wallMs, performance.now() - this.#steadyMs);
  }
}
