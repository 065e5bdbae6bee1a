/** `npm run bench -- simulation`: the service of `docs/scale.md`, and smaller and larger ones, as tables. */
import type { Row } from "../report.ts";
import { simulateService, type ServiceSize } from "./simulate.ts";

const SIZES: Record<string, ServiceSize> = {
  idle: { tunnels: 1_000_000, agents: 0, requestsPerSecond: 0, zipfExponent: 1 },
  small: { tunnels: 10_000, agents: 1_000, requestsPerSecond: 500, zipfExponent: 1 },
  large: { tunnels: 1_000_000, agents: 100_000, requestsPerSecond: 50_000, zipfExponent: 1 },
};

export function buildSimulationRows(): Row[] {
  return Object.entries(SIZES).flatMap(([name, size]) => toRows(name, size));
}

function toRows(name: string, size: ServiceSize): Row[] {
  const group = `${name}: ${format(size.tunnels)} tunnels, ${format(size.agents)} agents, ${format(size.requestsPerSecond)} requests a second`;
  const service = simulateService(size);
  const { hottestTunnel: hottest } = service;
  const figures: [string, string][] = [
    ["requests a second of the hottest tunnel", format(hottest.requestsPerSecond)],
    ["objects of the hottest tunnel", format(hottest.shards)],
    ["requests a second of the hottest object", format(hottest.objectRequestsPerSecond)],
    ["tunnels with several objects", format(service.shardedTunnels)],
    ["transactions a second in PostgreSQL", format(service.databaseTransactionsPerSecond)],
    ...Object.entries(service.usdPerMonth).map(([cost, usd]): [string, string] => [
      `USD a month: ${cost}`,
      format(usd),
    ]),
    ["USD a month in total", format(service.usdPerMonthInTotal)],
    ["USD a million requests", service.usdPerMillionRequests.toFixed(2)],
    ...service.utilization.map(({ what, share }): [string, string] => [
      `utilization of ${what}`,
      `${format(share * 100)} %`,
    ]),
  ];
  return figures.map(([what, value]) => ({ group, what, value }));
}

function format(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: value < 10 ? 2 : 0 });
}
