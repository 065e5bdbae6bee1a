/** An amount of money: `12.50 USD`. */
export function formatUsd(cents: number): string {
  return `${(cents / 100).toFixed(2)} USD`;
}
