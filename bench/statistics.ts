/** Medians, percentiles and rounding for result rows. */

/** Between the two middle values if their number is even; NaN when there are none. */
export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}

/**
 * The nearest rank: the least value that at least this part of all values does not exceed. NaN when there are none.
 * @param part above 0, at most 1.
 */
export function percentile(values: number[], part: number): number {
  return getPercentile(
    values.toSorted((a, b) => a - b),
    part,
  );
}

function getPercentile(sorted: number[], part: number): number {
  // For example, 0.07 * 100 is 7.000000000000001.
  const rank = Math.ceil(round(sorted.length * part, 6));
  return sorted[rank - 1] ?? NaN;
}

/** Response times in milliseconds; NaN when there are none. */
export interface Latencies {
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

/** Sorts once: there can be a million values. */
export function summarizeLatencies(values: number[]): Latencies {
  const sorted = values.toSorted((a, b) => a - b);
  const [p50, p90, p99, p999, max] = [0.5, 0.9, 0.99, 0.999, 1].map((part) =>
    getPercentile(sorted, part),
  ) as [number, number, number, number, number];
  return { p50, p90, p99, p999, max };
}

/** @returns the item whose value is the median. */
export function medianBy<Item>(items: Item[], getValue: (item: Item) => number): Item {
  const sorted = items.toSorted((a, b) => getValue(a) - getValue(b));
  return sorted[Math.floor(sorted.length / 2)]!;
}

export function round(value: number, digits = 0): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}

/** @param ratio 1 is written as `100 %`. */
export function formatPercent(ratio: number, digits = 0): string {
  return `${(ratio * 100).toFixed(digits)} %`;
}
