/**
 * What a service of a given size costs on Cloudflare, and what breaks first: arithmetic, not a measurement. Requests arrive
 * at random (a Poisson process) at tunnels whose popularity follows Zipf's law; tunnels without an agent get none.
 */
import { SHARDS_MAX } from "../../protocol/limits.ts";
import {
  AGENT_MESSAGES_PER_REQUEST,
  CAPTURE_GB,
  CAPTURE_RETENTION_SECONDS,
  CAPTURE_WRITE_INTERVAL_SECONDS,
  CAPTURE_WRITE_SECONDS,
  CAPTURES_MAX_GB,
  CAPTURES_PER_PAGE_MAX,
  COUNTERS_SAVE_SECONDS,
  CPU_MS_PER_REQUEST,
  DATABASE_TRANSACTIONS_PER_SECOND,
  HEARTBEATS_PER_SECOND,
  OBJECT_MAX_REQUESTS_PER_SECOND,
  REPORT_CALL_SECONDS,
  REPORT_MAX_REQUESTS,
  REPORT_SECONDS,
  RESPONSE_SECONDS,
  ROWS_PER_CAPTURE_PAGE,
  ROWS_PER_REPORT,
  ROWS_PER_SAVE,
  ROWS_PER_SAVE_ALARM,
  TRANSACTIONS_PER_REPORT,
} from "./costs.ts";
import { EMPTY_OBJECT_GB, MESSAGES_PER_REQUEST, OBJECT_GB, USD } from "./prices.ts";

const MONTH_SECONDS = 30 * 24 * 3600;

export interface ServiceSize {
  tunnels: number;
  /** Each serves one tunnel: the most popular ones. */
  agents: number;
  requestsPerSecond: number;
  /** 1: the second tunnel has half the requests of the first one, the third a third. */
  zipfExponent: number;
}

/** What an object does in a second, on average, and what it stores. */
interface ObjectLoad {
  requests: number;
  /** Times in which it runs, from 0 to 1. */
  activeShare: number;
  reports: number;
  alarms: number;
  counterRows: number;
  capturePages: number;
  storedGb: number;
}

interface SimulatedService {
  /** The load of the most popular tunnel. */
  hottestTunnel: { requestsPerSecond: number; shards: number; objectRequestsPerSecond: number };
  /** Tunnels whose visitors need more than one object. */
  shardedTunnels: number;
  databaseTransactionsPerSecond: number;
  usdPerMonth: Record<CostName, number>;
  usdPerMonthInTotal: number;
  /** For requests alone: without heartbeats and storage. */
  usdPerMillionRequests: number;
  /** The highest first: above 1, the limit is exceeded. */
  utilization: { what: string; share: number }[];
}

/** The costs that grow with the number of requests. */
const REQUEST_COSTS = [
  "Worker requests",
  "Worker CPU",
  "object requests",
  "object duration",
  "rows of counters and reports",
  "rows of captures",
] as const;
const STANDING_COSTS = ["heartbeats", "storage of captures", "storage of idle tunnels"] as const;
type CostName = (typeof REQUEST_COSTS)[number] | (typeof STANDING_COSTS)[number];

export function simulateService(size: ServiceSize): SimulatedService {
  const { requestsPerSecond } = size;
  const load = simulateTunnels(size);
  const hottest = load.hottestRequestsPerSecond;
  const hottestShards = countShards(hottest);
  const databaseTransactionsPerSecond = load.rowReports * TRANSACTIONS_PER_REPORT;
  const usdPerMonth = computeCosts(size, load.objects);
  const sum = (names: readonly CostName[]) =>
    names.reduce((usd, name) => usd + usdPerMonth[name], 0);
  const forRequests = sum(REQUEST_COSTS);
  return {
    hottestTunnel: {
      requestsPerSecond: hottest,
      shards: hottestShards,
      objectRequestsPerSecond: hottest / hottestShards,
    },
    shardedTunnels: load.shardedTunnels,
    databaseTransactionsPerSecond,
    usdPerMonth,
    usdPerMonthInTotal: forRequests + sum(STANDING_COSTS),
    usdPerMillionRequests:
      requestsPerSecond === 0 ? 0 : (forRequests * 1e6) / (requestsPerSecond * MONTH_SECONDS),
    utilization: [
      {
        what: "PostgreSQL, by the reports of tunnels",
        share: databaseTransactionsPerSecond / DATABASE_TRANSACTIONS_PER_SECOND,
      },
      {
        what: "the hottest object",
        share: hottest / hottestShards / OBJECT_MAX_REQUESTS_PER_SECOND,
      },
      {
        what: "the hottest tunnel, with all objects that it can have",
        share: hottest / (SHARDS_MAX * OBJECT_MAX_REQUESTS_PER_SECOND),
      },
    ].sort((one, other) => other.share - one.share),
  };
}

interface TunnelsLoad {
  /** All objects together. */
  objects: ObjectLoad;
  hottestRequestsPerSecond: number;
  shardedTunnels: number;
  /** Reports a second that change a tunnel's row: its first object reports for all. */
  rowReports: number;
}

function simulateTunnels({ agents, requestsPerSecond, zipfExponent }: ServiceSize): TunnelsLoad {
  const weights = Array.from({ length: agents }, (_, rank) => (rank + 1) ** -zipfExponent);
  const weightSum = weights.reduce((sum, weight) => sum + weight, 0);
  const requestRates = weights.map((weight) => (requestsPerSecond * weight) / weightSum);
  // An object without requests does nothing, so the sum begins with one.
  const objects = simulateObject(0);
  let shardedTunnels = 0;
  let rowReports = 0;
  for (const requests of requestRates) {
    const shards = countShards(requests);
    if (shards > 1) shardedTunnels += 1;
    const load = simulateObject(requests / shards);
    for (const name of Object.keys(objects) as (keyof ObjectLoad)[]) {
      objects[name] += load[name] * shards;
    }
    rowReports += load.reports;
  }
  return { objects, hottestRequestsPerSecond: requestRates[0] ?? 0, shardedTunnels, rowReports };
}

/** @param load of all objects together. @returns US dollars a month. */
function computeCosts(
  { agents, tunnels }: ServiceSize,
  load: ObjectLoad,
): Record<CostName, number> {
  const perMonth = (perSecond: number, usd: number) => perSecond * MONTH_SECONDS * usd;
  const objectCalls =
    load.requests * (1 + AGENT_MESSAGES_PER_REQUEST / MESSAGES_PER_REQUEST) + load.alarms;
  return {
    "Worker requests": perMonth(load.requests, USD.workerRequest),
    "Worker CPU": perMonth(load.requests * CPU_MS_PER_REQUEST, USD.workerCpuMs),
    "object requests": perMonth(objectCalls, USD.objectRequest),
    "object duration": perMonth(load.activeShare * OBJECT_GB, USD.objectGbSecond),
    "rows of counters and reports": perMonth(load.counterRows, USD.rowWritten),
    "rows of captures": perMonth(load.capturePages * ROWS_PER_CAPTURE_PAGE, USD.rowWritten),
    heartbeats: perMonth(
      (agents * HEARTBEATS_PER_SECOND) / MESSAGES_PER_REQUEST,
      USD.objectRequest,
    ),
    "storage of captures": load.storedGb * USD.storedGbMonth,
    "storage of idle tunnels": tunnels * EMPTY_OBJECT_GB * USD.storedGbMonth,
  };
}

function countShards(requestsPerSecond: number): number {
  const needed = Math.ceil(requestsPerSecond / OBJECT_MAX_REQUESTS_PER_SECOND);
  return Math.min(SHARDS_MAX, Math.max(1, needed));
}

function simulateObject(requests: number): ObjectLoad {
  // Each begins with a request, lasts its time, and the next one begins with the next request.
  const repeatedEvery = (seconds: number) => (requests === 0 ? 0 : 1 / (seconds + 1 / requests));
  const reports = Math.max(repeatedEvery(REPORT_SECONDS), requests / REPORT_MAX_REQUESTS);
  const saves = repeatedEvery(COUNTERS_SAVE_SECONDS);
  // Without a request soon after a save, the alarm is not needed.
  const saveAlarms = saves * (1 - Math.exp(-requests * COUNTERS_SAVE_SECONDS));
  const captures = simulateCaptureWrites(requests);
  const asleep = Math.exp(-requests * RESPONSE_SECONDS) * (1 - captures.waitingShare);
  return {
    requests,
    activeShare: Math.min(1, 1 - asleep + reports * REPORT_CALL_SECONDS * asleep),
    reports,
    alarms: reports + saveAlarms,
    counterRows:
      reports * ROWS_PER_REPORT + saves * ROWS_PER_SAVE + saveAlarms * ROWS_PER_SAVE_ALARM,
    capturePages: Math.max(captures.writes, requests / CAPTURES_PER_PAGE_MAX),
    storedGb: Math.min(CAPTURES_MAX_GB, requests * CAPTURE_RETENTION_SECONDS * CAPTURE_GB),
  };
}

/**
 * From one write to the next. When requests arrive within the interval, their captures are written at its end; otherwise that
 * of the next request soon after it.
 * @returns writes a second, and the share of the time in which captures wait for one.
 */
function simulateCaptureWrites(requests: number): { writes: number; waitingShare: number } {
  if (requests === 0) return { writes: 0, waitingShare: 0 };
  const interval = CAPTURE_WRITE_INTERVAL_SECONDS;
  const isIdle = Math.exp(-requests * interval);
  const seconds = interval + isIdle * (1 / requests + CAPTURE_WRITE_SECONDS);
  const waitingSeconds = interval - (1 - isIdle) / requests + isIdle * CAPTURE_WRITE_SECONDS;
  return { writes: 1 / seconds, waitingShare: waitingSeconds / seconds };
}
