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
