/** Numbers for people. */
import { DAY_MS, HOUR_MS } from "../../shared/time.ts";
import { LOCALE } from "./text/locale.ts";

const count = new Intl.NumberFormat(LOCALE);
const quantity = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 3 });
const percent = new Intl.NumberFormat(LOCALE, { style: "percent", maximumFractionDigits: 1 });

const PERCENT_MIN_RATIO = 0.001;

const usd = new Intl.NumberFormat(LOCALE, { style: "currency", currency: "USD" });
const price = new Intl.NumberFormat(LOCALE, {
  style: "currency",
  currency: "USD",
  trailingZeroDisplay: "stripIfInteger",
});

/** Decimal units, as the filter language and the command line use. */
const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"];

/** `12,345`. */
export function formatCount(value: number): string {
  return count.format(value);
}

/** `1 token`, `2 tokens`. @param noun in the singular; its plural ends with an s. */
export function formatQuantity(value: number, noun: string): string {
  return `${formatCount(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** @param ratio 0 to 1. @returns `12.5%`. A few of very many are more than none: `<0.1%`. */
export function formatPercent(ratio: number): string {
  const isTooSmall = ratio > 0 && ratio < PERCENT_MIN_RATIO;
  return isTooSmall ? `<${percent.format(PERCENT_MIN_RATIO)}` : percent.format(ratio);
}

/** `1.5 kB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < BYTE_UNITS.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${quantity.format(value)} ${BYTE_UNITS[unit]}`;
}

/** `12 ms`, `1.5 s`, `2 min`. */
export function formatMs(ms: number): string {
  if (ms < 1_000) return `${quantity.format(ms)} ms`;
  if (ms < 60_000) return `${quantity.format(ms / 1_000)} s`;
  return `${quantity.format(ms / 60_000)} min`;
}

/** `7 days`, `1 hour`: in days if their number is whole, else in hours. */
export function formatDaysOrHours(ms: number): string {
  const [unit, value] = ms % DAY_MS === 0 ? ["day", ms / DAY_MS] : ["hour", ms / HOUR_MS];
  return new Intl.NumberFormat(LOCALE, {
    style: "unit",
    unit,
    unitDisplay: "long",
    maximumFractionDigits: 0,
  }).format(value);
}

/** `0:01.240`, `1:14.004`, `2:00:00.000`: since the beginning of something, to the millisecond. */
export function formatOffset(ms: number): string {
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  const seconds = ((ms % 60_000) / 1_000).toFixed(3).padStart(6, "0");
  if (hours === 0) return `${minutes}:${seconds}`;
  return `${hours}:${String(minutes).padStart(2, "0")}:${seconds}`;
}

/** `$12`, `$12.50`: a price. */
export function formatUsd(dollars: number): string {
  return price.format(dollars);
}

/** `$12.50`. */
export function formatUsdCents(cents: number): string {
  return usd.format(cents / 100);
}
