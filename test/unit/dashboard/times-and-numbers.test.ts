/** Times and numbers as pages show them. */
import { describe, expect, test } from "vitest";
import { toPageLocale } from "../../../dashboard/ui/text/locale.ts";
import { formatDaysOrHours, formatPercent, formatQuantity } from "../../../dashboard/ui/numbers.ts";
import { formatRelativeTime } from "../../../dashboard/ui/text/relative-time.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../shared/time.ts";

describe("a time is relative to now, in a whole number of its unit", () => {
  test.each([
    [9_000, "now"],
    [45_000, "in 45 seconds"],
    [-59_900, "1 minute ago"],
    [59.7 * MINUTE_MS, "in 1 hour"],
    [-23 * HOUR_MS, "23 hours ago"],
    [47 * HOUR_MS, "in 2 days"],
    [10 * DAY_MS, "in 10 days"],
    [90 * DAY_MS - 1, "in 90 days"],
    [-119 * DAY_MS, "119 days ago"],
    [175 * DAY_MS, "in 6 months"],
    [-700 * DAY_MS, "2 years ago"],
  ])("%d ms: %s", (differenceMs, text) => {
    const nowMs = Date.UTC(2026, 10, 26);
    expect(formatRelativeTime(nowMs + differenceMs, nowMs)).toBe(text);
  });
});

test.each([
  ["de-DE", "20:30"],
  ["ar-EG", "8:30 PM"],
  ["en-GB", "20:30"],
  ["en-US", "8:30 PM"],
])("in a browser in %s half past eight in the evening is %s", (browser, text) => {
  const options = { hour: "numeric", minute: "2-digit", timeZone: "UTC" } as const;
  const locale = toPageLocale(new Intl.DateTimeFormat(browser, options).resolvedOptions());
  const shown = new Intl.DateTimeFormat(locale, options).format(Date.UTC(2026, 1, 1, 20, 30));
  expect(shown.replaceAll("\u202f", " ")).toBe(text);
});

test("an English browser keeps the order of its dates", () => {
  const locale = toPageLocale(
    new Intl.DateTimeFormat("en-GB", { hour: "2-digit" }).resolvedOptions(),
  );
  expect(new Intl.DateTimeFormat(locale, { dateStyle: "medium" }).format(0)).toBe("1 Jan 1970");
});

test.each([
  [0, "0%"],
  [2 / 4_040, "<0.1%"],
  [0.001, "0.1%"],
  [0.125, "12.5%"],
  [1, "100%"],
])("the share %d is shown as %s", (ratio, text) => {
  expect(formatPercent(ratio)).toBe(text);
});

test.each([
  [HOUR_MS, "1 hour"],
  [36 * HOUR_MS, "36 hours"],
  [DAY_MS, "1 day"],
  [365 * DAY_MS, "365 days"],
])("a lifetime of %d ms is shown as %s", (ms, text) => {
  expect(formatDaysOrHours(ms)).toBe(text);
});

test.each([
  [0, "0 tokens"],
  [1, "1 token"],
  [1_200, "1,200 tokens"],
])("a quantity has a noun in the right number: %d", (count, text) => {
  expect(formatQuantity(count, "token")).toBe(text);
});
