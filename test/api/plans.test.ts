import { expect, test } from "vitest";
import { tunnelExpiry } from "../../workers/plans.ts";

const NOW = new Date("2026-01-01T00:00:00Z");
const HOUR = 3600;

test.each([
  ["free", undefined, HOUR],
  ["free", 600, 600],
  ["free", 2 * HOUR, HOUR],
  ["pro", undefined, 24 * HOUR],
  ["team", undefined, 7 * 24 * HOUR],
  ["team", 30 * 24 * HOUR, 7 * 24 * HOUR],
  ["enterprise", undefined, null],
  ["enterprise", 2 * HOUR, 2 * HOUR],
  ["enterprise", 10_000 * 24 * HOUR, 366 * 24 * HOUR],
] as const)("on %s, asked for %j seconds, a tunnel lives for %j", (plan, asked, granted) => {
  const expiry = tunnelExpiry(plan, asked, NOW);
  expect(expiry && (expiry.getTime() - NOW.getTime()) / 1000).toBe(granted);
});
