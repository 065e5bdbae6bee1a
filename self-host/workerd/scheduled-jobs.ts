/** Has the Worker run its scheduled jobs once a minute, and counts those that fail. */
import { getErrorMessage } from "../../shared/error-message.ts";
import { MINUTE_MS } from "../../shared/time.ts";
import type { Log } from "../log.ts";

export interface ScheduledJobsOptions {
  /** Runs each job once. Resolves with the number of those that have failed, which the Worker has logged. */
  run(): Promise<number>;
  log: Log;
}

export class ScheduledJobs {
  readonly #options: ScheduledJobsOptions;
  readonly #timer: NodeJS.Timeout;
  #isBusy = false;
  #failed = 0;

  constructor(options: ScheduledJobsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#run(), MINUTE_MS);
  }

  /** How many have failed so far. */
  get failed(): number {
    return this.#failed;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #run(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      this.#failed += await this.#options.run();
    } catch (error) {
      this.#failed += 1;
      this.#options.log.warn(
        `cron: the jobs of this minute failed, and the next ones follow: ${getErrorMessage(error)}`,
      );
    }
    this.#isBusy = false;
  }
}
