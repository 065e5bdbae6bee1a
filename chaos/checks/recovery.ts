/** After the last fault, everything works again without help. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "../../protocol/schemas/tunnels/connections.ts";
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { converseOverTcp } from "../load/conversations.ts";
import type { LoadContext } from "../load/load.ts";
import { visit } from "../load/visitors.ts";
import type { System } from "../system.ts";
import type { CheckResult } from "./check.ts";

const POLL_MS = 250;
const NEWEST_CAPTURES = 100;

/** Call it when the last fault has ended. @returns a result for each part, with the time that it took. */
export async function checkRecovery(
  system: System,
  context: LoadContext,
  maxMs: number,
): Promise<CheckResult[]> {
  const startedAtMs = performance.now();
  const parts: [string, () => Promise<string | undefined>][] = [
    ["the list of tunnels shows every agent", () => findTunnelProblem(system)],
    ["the list of connections has one for each agent", () => findConnectionProblem(system)],
    ["visitors reach every tunnel", () => findVisitProblem(system, context)],
    ["new requests are in the list of captures", () => findCaptureProblem(system, context)],
  ];
  if (context.targets.streamPort !== undefined)
    parts.push(["visitors reach the TCP tunnel", () => findStreamProblem(context)]);
  return Promise.all(
    parts.map(async ([name, findProblem]) => {
      let problem = await findProblem();
      while (problem !== undefined && performance.now() - startedAtMs < maxMs) {
        await sleep(POLL_MS);
        problem = await findProblem();
      }
      const tookMs = performance.now() - startedAtMs;
      const detail = problem ?? `after ${(tookMs / 1_000).toFixed(1)} s`;
      return { name, passed: problem === undefined && tookMs <= maxMs, detail };
    }),
  );
}

async function findTunnelProblem({ owner, tunnelIds }: System): Promise<string | undefined> {
  const { status, body = [] } = await owner.call<Tunnel[]>("GET", "/tunnels?limit=1000");
  const missing = [...tunnelIds].filter(([, id]) => {
    const tunnel = body.find((one) => one.id === id);
    return !tunnel?.agentConnected || tunnel.status !== "active";
  });
  return missing.length === 0
    ? undefined
    : `${status}, offline: ${missing.map(([name]) => name).join(", ")}`;
}

async function findConnectionProblem({ owner, tunnelIds }: System): Promise<string | undefined> {
  const { status, body = [] } = await owner.call<Connection[]>("GET", "/connections");
  const listed = body.flatMap(({ tunnels }) => tunnels).sort();
  const expected = [...tunnelIds.values()].sort();
  return listed.join() === expected.join()
    ? undefined
    : `${status}, ${listed.length} instead of ${expected.length}`;
}

async function findVisitProblem(system: System, context: LoadContext): Promise<string | undefined> {
  for (const tunnel of system.httpTunnels) {
    const { outcome, status } = await visit(context, tunnel, "page");
    if (outcome !== "complete") return `${tunnel}: ${outcome} ${status}`;
  }
  return undefined;
}

async function findCaptureProblem(
  system: System,
  context: LoadContext,
): Promise<string | undefined> {
  for (const tunnel of system.httpTunnels) {
    const sentAtMs = Date.now();
    await visit(context, tunnel, "page");
    const { status, body = [] } = await system.owner.call<CaptureSummary[]>(
      "GET",
      `/inspector?limit=${NEWEST_CAPTURES}`,
    );
    const isListed = body.some(
      ({ tunnel_id: id, timestamp }) =>
        id === system.tunnelIds.get(tunnel) && new Date(timestamp).getTime() >= sentAtMs,
    );
    if (!isListed) return `${status}, the newest request of ${tunnel} is missing`;
  }
  return undefined;
}

async function findStreamProblem(context: LoadContext): Promise<string | undefined> {
  const { sent, received, end } = await converseOverTcp(context, context.targets.streamPort!);
  return received === sent && sent > 0 ? undefined : `${received} of ${sent} messages, ${end}`;
}
