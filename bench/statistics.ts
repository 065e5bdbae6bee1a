/** Medians and rounding for result rows. */

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

/** @param part between 0 and 1. */
export function percentile(values: number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * part)] ?? NaN;
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
  const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? NaN;
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: sorted.at(-1) ?? NaN };
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
