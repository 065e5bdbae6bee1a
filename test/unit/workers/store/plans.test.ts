import { expect, test } from "vitest";
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

test.each([
  ["free", [HOUR, 0, 7, false, false, false]],
  ["pro", [24 * HOUR, 5, 30, true, true, true]],
  ["team", [7 * 24 * HOUR, null, 90, true, true, true]],
  ["enterprise", [null, null, 365, true, true, true]],
] as const)("the limits of %s are those that its accounts read", (plan, granted) => {
  const {
    plan: named,
    trial_ends_at: trial,
    ...terms
  } = getEntitlements({ plan, trialEndsAt: null }, true, NOW);
  expect([named, trial]).toEqual([plan, null]);
  expect(terms).toEqual({
    tunnel_ttl_seconds: granted[0],
    max_reserved_subdomains: granted[1],
    inspector_retention_days: granted[2],
    tunnel_password: granted[3],
    edge_identity_gate: granted[4],
    master_keys: granted[5],
  });
});

test("a trial includes only tunnel passwords, until it ends", () => {
  const trial = { plan: "free", trialEndsAt: new Date(NOW.getTime() + 1) } as const;
  expect(hasFeature("tunnelPassword", trial, NOW)).toBe(true);
  expect(hasFeature("tunnelPassword", trial, trial.trialEndsAt)).toBe(false);
  expect(hasFeature("identityGate", trial, NOW)).toBe(false);
  expect(hasFeature("masterKeys", trial, NOW)).toBe(false);
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
