/** A check of what an experiment recorded. */
import { setTimeout as sleep } from "node:timers/promises";

export interface CheckResult {
  name: string;
  passed: boolean;
  /** The compared entries, or the first differences. */
  detail: string;
}

const DIFFERENCES_MAX = 5;
const POLL_MS = 250;

/** Repeats a check until all of its results have passed, or `maxMs` have gone by. @returns the last results. */
export async function repeatUntilPassed(
  maxMs: number,
  check: () => Promise<CheckResult[]>,
): Promise<CheckResult[]> {
  const deadline = performance.now() + maxMs;
  for (;;) {
    const results = await check();
    if (results.every(({ passed }) => passed) || performance.now() > deadline) return results;
    await sleep(POLL_MS);
  }
}

/** Passes when there are no differences. @param summary what was compared. */
export function toCheckResult(name: string, differences: string[], summary: string): CheckResult {
  if (differences.length === 0) return { name, passed: true, detail: summary };
  const more = differences.length - DIFFERENCES_MAX;
  const shown = differences.slice(0, DIFFERENCES_MAX).join("; ");
  const detail = `${differences.length} of ${summary}: ${shown}${more > 0 ? `; and ${more} more` : ""}`;
  return { name, passed: false, detail };
}
