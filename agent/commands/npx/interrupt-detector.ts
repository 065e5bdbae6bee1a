/**
 * Detects a SIGINT that the shell between npm and this process got, and does not act on. The shell sleeps until this
 * process ends, so it runs only to handle a signal, which Linux counts. Whatever else makes it run (a suspended
 * machine, a stopped job) makes all threads of npm run, too, or continues this process.
 */

/** How often Linux has run each of them. */
export interface Runs {
  shell: number;
  /** By thread, without npm's main thread: that handles signals. */
  npmThreads: Map<string, number>;
}

export class InterruptDetector {
  readonly #readRuns: () => Runs;
  #runs: Runs;
  #isSuspected = false;
  #wasContinued = false;
  readonly #handleContinued = () => {
    this.#wasContinued = true;
  };

  /** @param readRuns throws when one of the processes has ended. */
  constructor(readRuns: () => Runs) {
    this.#readRuns = readRuns;
    this.#runs = readRuns();
    process.on("SIGCONT", this.#handleContinued);
  }

  end(): void {
    process.off("SIGCONT", this.#handleContinued);
  }

  /** Called regularly. True at the second call after the signal: this process may learn late that it was continued. */
  isDetected(): boolean {
    const before = this.#runs;
    try {
      this.#runs = this.#readRuns();
    } catch {
      return false;
    }
    const wasSuspected = this.#isSuspected;
    const wasContinued = this.#wasContinued;
    this.#wasContinued = false;
    const hasIdleThread = [...this.#runs.npmThreads].some(
      ([thread, count]) => before.npmThreads.get(thread) === count,
    );
    this.#isSuspected = this.#runs.shell !== before.shell && hasIdleThread && !wasContinued;
    return wasSuspected && !wasContinued;
  }
}
