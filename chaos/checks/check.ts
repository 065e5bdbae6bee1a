/** A check of what an experiment recorded. */
export interface CheckResult {
  name: string;
  passed: boolean;
  /** The compared entries, or the first differences. */
  detail: string;
}

const DIFFERENCES_MAX = 5;

/** Passes when there are no differences. @param summary what was compared. */
export function toCheckResult(name: string, differences: string[], summary: string): CheckResult {
  if (differences.length === 0) return { name, passed: true, detail: summary };
  const more = differences.length - DIFFERENCES_MAX;
  const shown = differences.slice(0, DIFFERENCES_MAX).join("; ");
  const detail = `${differences.length} of ${summary}: ${shown}${more > 0 ? `; and ${more} more` : ""}`;
  return { name, passed: false, detail };
}
