/** Agents that connect at once (`--tunnels`, at most 1,999): how soon the list contains them, omits closed ones, and is complete after a crash. */
import { setTimeout as sleep } from "node:timers/promises";
import { expose, type ExposedTunnel } from "../../agent/expose.ts";
import { callApi, mintToken } from "../api.ts";
import { CONCURRENCY, runConcurrently } from "../many/concurrency.ts";
import type { Row } from "../report.ts";
import type { BenchOptions } from "../settings.ts";
import type { BenchStack } from "../stack.ts";

/** The part of the agents that close. */
const CLOSED_PART = 0.3;
const WAIT_MAX_MS = 60_000;

export async function benchConnections(
  stack: BenchStack,
  { tunnels: count }: BenchOptions,
): Promise<Row[]> {
  const closed = Math.floor(count * CLOSED_PART);
  const token = await mintToken(stack, { tunnelQuota: count });
  const origin = `127.0.0.1:${stack.origin.port}`;
  const agents: ExposedTunnel[] = [];
  const startedAt = performance.now();
  await runConcurrently(count, async () => {
    agents.push(await expose({ origin, server: stack.server.url, token }));
  });
  const admittedMs = performance.now() - startedAt;
  // The agent of the stack is listed as well.
  const listed = await waitForCount(stack, count + 1);
  const fresh = await fetchList(stack);

  await Promise.all(agents.splice(0, closed).map((agent) => agent.close()));
  const gone = await waitForCount(stack, count + 1 - closed);

  process.kill(stack.workerdPid, "SIGKILL");
  const crashed = await retryList(stack);
  const back = await waitForCount(stack, count + 1 - closed);
  await Promise.all(agents.map((agent) => agent.close()));
  return [
    {
      group: "connections",
      agents: count,
      "admitted/s": Math.round((count * 1000) / admittedMs),
      "at once": CONCURRENCY,
      "all listed after ms": Math.round(listed.ms),
      "list in ms": Math.round(fresh.ms),
      "gone after ms": Math.round(gone.ms),
      "listed then": gone.count,
      "listed right after kill -9": crashed.count,
      "that list in ms": Math.round(crashed.ms),
      "back after ms": Math.round(back.ms),
      "listed in the end": back.count,
    },
  ];
}

interface TimedCount {
  count: number;
  ms: number;
}

async function fetchList(stack: BenchStack): Promise<TimedCount> {
  const startedAt = performance.now();
  const { length: count } = await callApi<unknown[]>(stack, "GET", "/connections");
  return { count, ms: performance.now() - startedAt };
}

async function retryList(stack: BenchStack): Promise<TimedCount> {
  for (;;) {
    try {
      return await fetchList(stack);
    } catch {
      await sleep(20);
    }
  }
}

/** Repeats the request until this many connections are listed, or the time limit has passed. */
async function waitForCount(stack: BenchStack, wanted: number): Promise<TimedCount> {
  const startedAt = performance.now();
  for (;;) {
    const { count } = await retryList(stack);
    const ms = performance.now() - startedAt;
    if (count === wanted || ms > WAIT_MAX_MS) return { count, ms };
    await sleep(20);
  }
}
