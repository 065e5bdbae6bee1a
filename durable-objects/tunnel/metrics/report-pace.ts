/**
 * When a tunnel reports to the database: some seconds after a request as long as it has reported little, then once a
 * minute. So people see the first requests soon, and the database has one report a minute of each busy tunnel at most.
 */
import { MINUTE_MS } from "../../../shared/time.ts";

/** How soon a request is reported after a pause. */
export const REPORT_PROMPT_MS = 5_000;
/** How long a report waits at most. */
export const REPORT_INTERVAL_MS = MINUTE_MS;
/** Prompt reports after a pause of this many intervals. */
export const REPORT_BURST = 10;

export class ReportPace {
  /** Moves one interval ahead with each report: at most as many as the burst. */
  #spentUntilMs: number;

  constructor(savedMs = 0) {
    this.#spentUntilMs = savedMs;
  }

  /** When traffic of this moment is to be reported: within an interval, even when the clock was set back. */
  nextAtMs(nowMs: number): number {
    const allowedAtMs = this.#spentUntilMs - (REPORT_BURST - 1) * REPORT_INTERVAL_MS;
    const latestAtMs = nowMs + REPORT_INTERVAL_MS;
    return Math.min(Math.max(allowedAtMs, nowMs + REPORT_PROMPT_MS), latestAtMs);
  }

  recordReport(nowMs: number): void {
    const spentUntilMs = Math.max(this.#spentUntilMs, nowMs) + REPORT_INTERVAL_MS;
    this.#spentUntilMs = Math.min(spentUntilMs, nowMs + REPORT_BURST * REPORT_INTERVAL_MS);
  }

  /** To be stored, and passed to the constructor after a restart. */
  get saved(): number {
    return this.#spentUntilMs;
  }
}
