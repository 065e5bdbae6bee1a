/** The service's counters of requests, compared with what visitors saw. */
import { REPORT_INTERVAL_MS } from "../../durable-objects/tunnel/metrics/report-pace.ts";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import type { FaultEntry, History } from "../history.ts";
import type { Owner } from "../owner.ts";
import { repeatUntilPassed, toCheckResult, type CheckResult } from "./check.ts";

/**
 * How much a crash of workerd may lose: tunnels save their counters every five seconds
 * (`COUNTERS_SAVE_INTERVAL_MS` in durable-objects/tunnel/metrics/metrics-reporter.ts), and as late as a busy machine runs
 * the alarm.
 */
export const COUNTERS_LOST_MAX_MS = 5_000 + 2_000;
/** How long the last report may take to arrive: a tunnel that has reported much waits a minute. */
const REPORT_MAX_MS = REPORT_INTERVAL_MS + 30_000;

interface CounterBounds {
  least: number;
  most: number;
}

/** How many requests the counter of a tunnel may show. */
export function computeCounterBounds(history: History, tunnel: string): CounterBounds {
  const requests = history.list("request").filter((request) => request.tunnel === tunnel);
  const conversations = history.list("conversation").filter((entry) => entry.tunnel === tunnel);
  const complete = requests.filter(({ outcome }) => outcome === "complete");
  const losses = history.list("fault").flatMap(findLoss);
  const lost = complete.filter(({ startedAtMs, endedAtMs }) =>
    losses.some(({ fromMs, toMs }) => endedAtMs >= fromMs && startedAtMs <= toMs),
  );
  const ids = new Set(requests.map(({ id }) => id));
  const arrivals = history.list("arrival").filter(({ id }) => ids.has(id)).length;
  // A request without an answer may have been counted, and twice if it was repeated.
  const uncertain = requests.length - complete.length + conversations.length;
  return {
    least: complete.length - lost.length,
    most: Math.max(complete.length, arrivals) + 2 * uncertain,
  };
}

/** When a fault makes objects lose what they have not saved. */
function findLoss({ atMs, fault, skipped }: FaultEntry): { fromMs: number; toMs: number }[] {
  const fromMs = atMs - COUNTERS_LOST_MAX_MS;
  if (skipped !== undefined) return [];
  if (fault.kind === "kill" && (fault.process === "workerd" || fault.process === "server"))
    return [{ fromMs, toMs: atMs }];
  // An object that can't write is restarted.
  if (fault.kind === "fill-disk")
    return [{ fromMs, toMs: atMs + fault.seconds * 1_000 + COUNTERS_LOST_MAX_MS }];
  return [];
}

/** Repeated, because a tunnel reports its counters some seconds later. */
export function checkCounters(
  history: History,
  owner: Owner,
  tunnelIds: Map<string, string>,
): Promise<CheckResult[]> {
  return repeatUntilPassed(REPORT_MAX_MS, async () => {
    const { differences, summary } = await compareCounters(history, owner, tunnelIds);
    return [toCheckResult("counters of requests agree with the visitors", differences, summary)];
  });
}

async function compareCounters(history: History, owner: Owner, tunnelIds: Map<string, string>) {
  const { body: tunnels = [] } = await owner.call<Tunnel[]>("GET", "/tunnels?limit=1000");
  const differences: string[] = [];
  const texts: string[] = [];
  for (const [name, id] of tunnelIds) {
    const counted = tunnels.find((tunnel) => tunnel.id === id)?.totalRequests;
    const { least, most } = computeCounterBounds(history, name);
    const text = `${name}: ${counted} (${least} to ${most})`;
    texts.push(text);
    if (counted === undefined || counted < least || counted > most) differences.push(text);
  }
  return { differences, summary: texts.join(", ") };
}
