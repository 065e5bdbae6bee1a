import { describe, expect, test } from "vitest";
import { simulateService } from "../../../bench/simulation/simulate.ts";

const LARGE = { tunnels: 1_000_000, agents: 100_000, requestsPerSecond: 50_000, zipfExponent: 1 };

describe("the simulation of a service", () => {
  test("charges idle tunnels for nothing but their storage", () => {
    const idle = simulateService({ ...LARGE, agents: 0, requestsPerSecond: 0 });
    const { "storage of idle tunnels": storage, ...others } = idle.usdPerMonth;
    expect(new Set(Object.values(others))).toEqual(new Set([0]));
    expect(storage).toBeGreaterThan(0);
    expect(idle.databaseTransactionsPerSecond).toBe(0);
  });

  test("spreads a tunnel that one object can't serve, within the bound", () => {
    const { hottestTunnel, shardedTunnels } = simulateService(LARGE);
    expect(hottestTunnel.shards).toBeGreaterThan(1);
    expect(hottestTunnel.objectRequestsPerSecond).toBeLessThanOrEqual(1_000);
    expect(shardedTunnels).toBeGreaterThan(0);
    const one = simulateService({ ...LARGE, zipfExponent: 3 });
    expect(one.hottestTunnel.shards).toBe(16);
    expect(one.utilization[0]!.share).toBeGreaterThan(1);
  });

  test("charges each request for the Worker and the object at least", () => {
    const { usdPerMillionRequests } = simulateService(LARGE);
    expect(usdPerMillionRequests).toBeGreaterThan(0.3 + 0.15);
  });
});
