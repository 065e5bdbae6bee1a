/**
 * An upgrade under load: the server of an older checkout is stopped, and this one starts on its data directory and port,
 * while visitors send requests through the older checkout's agent.
 */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createFirstAccount } from "../bench/stack.ts";
import { untilAborted } from "../bench/stop-signals.ts";
import { createPreparedDir } from "../test/harness/directories.ts";
import { reservePort } from "../test/harness/ports.ts";
import { createRandom } from "../test/harness/random.ts";
import { startServer, type TestServer } from "../test/harness/server/server.ts";
import { SupervisedAgent } from "./agent.ts";
import { toCheckResult, type CheckResult } from "./checks/check.ts";
import { checkRequests, describeRequest } from "./checks/requests.ts";
import type { ExperimentResult } from "./experiment.ts";
import { startFaultProxy } from "./faults/fault-proxy.ts";
import { History, type RequestEntry } from "./history.ts";
import { startOrigin } from "./load/origin.ts";
import { visit, type VisitContext } from "./load/visitors.ts";

const REQUESTS = 10_000;
const VISITORS = 8;
const TUNNEL = "upgraded";
/** How long a new connection waits while no server listens, as behind a balancer. */
const CONNECT_MAX_MS = 120_000;
const ATTEMPTS_MAX = 20;
/** The agent's program in this version and in earlier ones. */
const AGENT_PROGRAMS = ["agent/bin/launch.js", "agent/bin/underpass.ts"];

/** When no server, or one without its agent, was running. */
interface Swap {
  startedAtMs: number;
  endedAtMs: number;
}

/**
 * @param checkout the directory of the older version, with its packages.
 * @param signal ends the upgrade early, without checks.
 * @returns undefined when that version does not start here.
 */
export async function runUpgrade(
  checkout: string,
  log: (line: string) => void,
  signal?: AbortSignal,
): Promise<ExperimentResult | undefined> {
  await using cleanup = new AsyncDisposableStack();
  const history = new History();
  const random = createRandom(1);
  const dataDir = await createPreparedDir();
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
  const env = { PORT: String(await reservePort()) };
  let server: TestServer;
  try {
    server = await startServer({ checkout, dataDir, env });
  } catch (error) {
    log(`skipped: the older version does not start here: ${getLastLine(error)}`);
    return undefined;
  }
  cleanup.defer(() => server.stop().then(() => undefined));
  const origin = cleanup.use(await startOrigin(history));
  const { token } = await createFirstAccount(server);
  const program = AGENT_PROGRAMS.find((path) => existsSync(join(checkout, path))) ?? "";
  const options = ["--server", server.url, "--token-file", "TOKEN", "--subdomain", TUNNEL];
  const args = ["http", String(origin.httpPort), ...options, "--json"];
  const command = [process.execPath, join(checkout, program)];
  const agent = new SupervisedAgent({ name: TUNNEL, args, token, env: {}, command }, history);
  cleanup.defer(() => agent.stop());
  try {
    await agent.start();
  } catch (error) {
    log(`skipped: the older agent does not start here: ${getLastLine(error)}`);
    return undefined;
  }
  const proxy = cleanup.use(
    await startFaultProxy(server.port, { random, connectMaxMs: CONNECT_MAX_MS }),
  );

  let ids = 0;
  const context: VisitContext = {
    targets: {
      visitorPort: proxy.port,
      hosts: new Map([[TUNNEL, `${TUNNEL}.localhost:${server.port}`]]),
    },
    history,
    random,
    nextId: () => String(++ids),
  };
  const half = Promise.withResolvers<void>();
  const visits = sendAll(context, half.resolve);
  await untilAborted(signal, () => half.promise);
  const startedAtMs = history.now();
  log(`${ids} requests were sent; the older server stops`);
  await server.stop();
  server = await startServer({ dataDir, env });
  while ((await visit(context, TUNNEL, "page")).outcome !== "complete");
  const swap = { startedAtMs, endedAtMs: history.now() };
  log(`this server has answered its first request after ${swap.endedAtMs - startedAtMs} ms`);
  const results = await untilAborted(signal, () => visits);
  return { history, checks: [...compareAttempts(results, swap), ...checkRequests(history)] };
}

/** The attempts of each request: visitors repeat a GET that failed, and never a POST. */
async function sendAll(context: VisitContext, onHalf: () => void): Promise<RequestEntry[][]> {
  const results: RequestEntry[][] = [];
  let left = REQUESTS;
  const visitors = Array.from({ length: VISITORS }, async () => {
    while (left > 0) {
      left -= 1;
      if (left === REQUESTS / 2) onHalf();
      const kind = left % 5 === 0 ? "order" : "page";
      const attempts = [await visit(context, TUNNEL, kind)];
      while (
        kind === "page" &&
        attempts.at(-1)!.outcome !== "complete" &&
        attempts.length < ATTEMPTS_MAX
      )
        attempts.push(await visit(context, TUNNEL, kind));
      results.push(attempts);
    }
  });
  await Promise.all(visitors);
  return results;
}

function compareAttempts(results: RequestEntry[][], swap: Swap): CheckResult[] {
  const failures = results.flat().filter(({ outcome }) => outcome !== "complete");
  const isInFlight = ({ startedAtMs, endedAtMs }: RequestEntry) =>
    endedAtMs >= swap.startedAtMs && startedAtMs <= swap.endedAtMs;
  const last = results.map((attempts) => attempts.at(-1)!);
  const unanswered = last.filter(({ outcome }) => outcome !== "complete" && outcome !== "refused");
  const repeated = results.filter(({ length }) => length > 1).length;
  const refused = last.filter(({ outcome }) => outcome === "refused").length;
  return [
    toCheckResult(
      "no request failed but those in flight at the swap",
      failures.filter((entry) => !isInFlight(entry)).map(describeRequest),
      `${results.length} requests`,
    ),
    toCheckResult(
      "those in flight were answered, with an error or after being repeated",
      unanswered.map(describeRequest),
      `${refused} errors, ${repeated} repeated`,
    ),
  ];
}

function getLastLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.trim().split("\n").at(-1) ?? "";
}
