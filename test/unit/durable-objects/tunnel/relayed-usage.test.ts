import { expect, test } from "vitest";
import { RelayedUsage } from "../../../../durable-objects/tunnel/tcp/relayed-usage.ts";
import { DAY_MS } from "../../../../shared/time.ts";

const NOW = Date.UTC(2026, 10, 28);

function createUsage() {
  const stored = new Map<string, unknown>();
  const kv = {
    get: (key: string) => stored.get(key),
    put: (key: string, value: unknown) => void stored.set(key, value),
  };
  const usage = new RelayedUsage(kv as never);
  const take = (association: number, bytesIn = 10, nowMs = NOW) => {
    const totals = { connections: bytesIn === 0 ? 0 : 1, openConnections: 0, bytesIn, bytesOut: 0 };
    const source = `epoch/${association}`;
    const report = { tunnelId: "t", tokenNonce: "ab", source, ...totals };
    return usage.takeIncrease(report, nowMs).bytesIn;
  };
  const countStored = () => (stored.get("relayed-usage") as Map<string, unknown>).size;
  return { take, countStored };
}

// An agent whose connection breaks every second has this many in the ten minutes whose totals a relay reports again.
test("the associations that a relay reports again are counted once, however often the agent reconnected", () => {
  const { take } = createUsage();
  const associations = Array.from({ length: 600 }, (_, at) => at);
  expect(associations.map((at) => take(at))).toEqual(associations.map(() => 10));
  expect(associations.map((at) => take(at))).toEqual(associations.map(() => 0));
  expect(take(0, 15)).toBe(5);
});

test("an association is stored only if it carried traffic, for some days, and at most a thousand are", () => {
  const { take, countStored } = createUsage();
  take(0);
  for (let at = 1; at < 100; at++) take(at, 0);
  expect(countStored()).toBe(1);
  for (let at = 100; at < 1_200; at++) take(at);
  expect(countStored()).toBe(1_000);
  take(1_200, 10, NOW + 30 * DAY_MS);
  expect(countStored()).toBe(1);
});

test("an association is stored when the clock is set back", () => {
  const { take } = createUsage();
  take(0);
  take(1, 10, NOW - 30 * DAY_MS);
  expect(take(0, 10, NOW - 30 * DAY_MS)).toBe(0);
});

test("an older report that arrives late counts nothing, and the newest one counts nothing twice", () => {
  const { take } = createUsage();
  expect([10, 5, 10, 12].map((bytesIn) => take(0, bytesIn))).toEqual([10, 0, 0, 2]);
});
