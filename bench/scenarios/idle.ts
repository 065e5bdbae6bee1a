/** Thousands of idle tunnels: the memory of each, and whether all of them answer a request. */
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expose, type ExposedTunnel } from "../../agent/expose.ts";
import { mintToken } from "../api.ts";
import { CONCURRENCY, runConcurrently } from "../many-agents.ts";
import { getResidentMiB } from "../processes.ts";
import type { Row } from "../report.ts";
import type { BenchServer } from "../stack.ts";

const TUNNELS = 5_000;
/** Each request wakes two objects, whose files stay open for ten seconds: a higher rate exceeds the limit of open files. */
const VISITS_PER_SECOND = 100;

export async function benchIdle(stack: BenchServer): Promise<Row[]> {
  const before = { workerd: getResidentMiB(stack.workerdPid), agent: getResidentMiB(process.pid) };
  const startedAt = performance.now();
  const token = await mintToken(stack, { tunnelQuota: TUNNELS });
  const tunnels: ExposedTunnel[] = [];
  const origin = `127.0.0.1:${stack.origin.port}`;
  await runConcurrently(TUNNELS, async () => {
    tunnels.push(await expose({ origin, server: stack.server.url, token }));
  });
  const seconds = (performance.now() - startedAt) / 1000;
  // An idle object is evicted after ten seconds.
  await sleep(15_000);
  const after = { workerd: getResidentMiB(stack.workerdPid), agent: getResidentMiB(process.pid) };
  let answered = 0;
  await runConcurrently(TUNNELS, async (i) => {
    const paced = sleep((CONCURRENCY * 1000) / VISITS_PER_SECOND);
    if ((await visit(stack, new URL(tunnels[i]!.url).host)) === 200) answered += 1;
    await paced;
  });
  await Promise.all(tunnels.map((tunnel) => tunnel.close()));
  const perTunnel = (mib: number): string => `${Math.round((mib * 1024) / TUNNELS)} KiB`;
  return [
    {
      group: "idle tunnels",
      tunnels: TUNNELS,
      "connected in s": Math.round(seconds),
      "workerd each": perTunnel(after.workerd - before.workerd),
      "agent each": perTunnel(after.agent - before.agent),
      "answered when visited": answered,
    },
  ];
}

function visit(stack: BenchServer, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: "127.0.0.1", port: stack.server.port, headers: { host } });
    request.on("response", (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode ?? 0));
    });
    request.on("error", reject);
    request.end();
  });
}
