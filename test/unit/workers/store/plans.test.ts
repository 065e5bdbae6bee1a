import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PLANS } from "../../../../protocol/plans.ts";
import { ROOT } from "../../../../self-host/build/build.ts";
import {
  getEntitlements,
  hasFeature,
  getTunnelExpiry,
} from "../../../../workers/store/billing/plans.ts";

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
] as const)(
  "on %s, asked for %j seconds, a tunnel lives for %j",
  (plan, requestedSeconds, granted) => {
    const expiry = getTunnelExpiry(plan, requestedSeconds, NOW);
    expect(expiry && (expiry.getTime() - NOW.getTime()) / 1000).toBe(granted);
  },
);

/** The cells of the table of plans in docs/api.md, by the field of the entitlements. */
const documented = new Map(
  readFileSync(join(ROOT, "docs/api.md"), "utf8")
    .split("\n## Plans\n")[1]!
    .split("\n## ")[0]!
    .split("\n")
    .flatMap((line): [string, string[]][] => {
      const [, field, cells] = /^\| `(\w+)`[^|]*\|(.*)\|$/.exec(line) ?? [];
      return field === undefined ? [] : [[field, cells!.split("|").map((cell) => cell.trim())]];
    }),
);

function formatTerm(field: string, value: string | number | boolean | null): string {
  if (value === null) return field === "tunnel_ttl_seconds" ? "never" : "unlimited";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (field !== "tunnel_ttl_seconds") return String(value);
  const hours = Number(value) / HOUR;
  if (hours > 24) return `${hours / 24} days`;
  return hours === 1 ? "1 hour" : `${hours} hours`;
}

test.each(PLANS.map((plan, column) => [plan, column] as const))(
  "the documentation has the terms of the plan %s",
  (plan, column) => {
    const {
      plan: name,
      trial_ends_at: trial,
      ...terms
    } = getEntitlements({ plan, trialEndsAt: null }, true, NOW);
    expect([name, trial]).toEqual([plan, null]);
    const cells = [...documented].map(([field, row]) => [
      field,
      row[column]!.replace("during a trial", "no"),
    ]);
    const expected = Object.entries(terms).map(([field, value]) => [
      field,
      formatTerm(field, value),
    ]);
    expect(Object.fromEntries(cells)).toEqual(Object.fromEntries(expected));
  },
);

test("a trial includes only tunnel passwords, until it ends", () => {
  const trial = { plan: "free", trialEndsAt: new Date(NOW.getTime() + 1) } as const;
  expect(hasFeature("tunnel_password", trial, NOW)).toBe(true);
  expect(hasFeature("tunnel_password", trial, trial.trialEndsAt)).toBe(false);
  expect(hasFeature("edge_identity_gate", trial, NOW)).toBe(false);
  expect(hasFeature("master_keys", trial, NOW)).toBe(false);
  const { max_reserved_subdomains: names, tunnel_ttl_seconds: ttl } = getEntitlements(
    trial,
    true,
    NOW,
  );
  expect([names, ttl]).toEqual([0, HOUR]);
});

test("on a self-hosted server every plan has master keys", () => {
  const free = { plan: "free", trialEndsAt: null } as const;
  expect(getEntitlements(free, false, NOW).master_keys).toBe(true);
});
