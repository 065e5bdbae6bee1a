/** Visitors who send requests at a fixed rate, whether or not the earlier ones have been answered. */
import { Agent, request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { BenchStack } from "./stack.ts";

export const PACED_REQUESTS_PER_SECOND = 500;
const TICKS_PER_SECOND = 50;

/** @returns by path, when its response had arrived, in ms since the epoch. */
export async function visitPaced(stack: BenchStack, seconds: number): Promise<Map<string, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const answeredAtMs = new Map<string, number>();
  const visits: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let tick = 0; tick < seconds * TICKS_PER_SECOND; tick++) {
    const dueMs = startedAt + (tick * 1000) / TICKS_PER_SECOND;
    await sleep(Math.max(0, dueMs - performance.now()));
    for (let i = 0; i < PACED_REQUESTS_PER_SECOND / TICKS_PER_SECOND; i++) {
      const path = `/${crypto.randomUUID()}`;
      visits.push(visit(stack, agent, path).then((atMs) => void answeredAtMs.set(path, atMs)));
    }
  }
  await Promise.all(visits);
  agent.destroy();
  return answeredAtMs;
}

function visit({ server, host }: BenchStack, agent: Agent, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host };
    const request = httpRequest({ host: "127.0.0.1", port: server.port, path, headers, agent });
    request.on("response", (answer) => {
      answer.resume();
      answer.on("end", () => resolve(performance.timeOrigin + performance.now()));
    });
    request.on("error", reject);
    request.end();
  });
}
