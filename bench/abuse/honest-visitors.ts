/**
 * The honest tenant's visitors, in a process of their own: an open loop. Each request is due at a fixed time, and its
 * latency counts from then, so that a stall delays all the requests that were due during it (a closed loop would send
 * fewer of them instead).
 */
import { Agent, request } from "node:http";
import { summarizeLatencies, type Latencies } from "../statistics.ts";

export interface HonestPlan {
  port: number;
  host: string;
  requestsPerSecond: number;
  seconds: number;
}

export interface HonestResult extends Latencies {
  requests: number;
  errors: string[];
}

/** Below the 5 s after which workerd closes an idle connection. */
const KEEP_ALIVE_MS = 2_000;
const ANSWER_MAX_MS = 30_000;

async function visit({
  port,
  host,
  requestsPerSecond,
  seconds,
}: HonestPlan): Promise<HonestResult> {
  const agent = new Agent({ keepAlive: true, timeout: KEEP_ALIVE_MS, scheduling: "lifo" });
  const latencies: number[] = [];
  const errors: string[] = [];
  const startedAt = performance.now();
  const total = requestsPerSecond * seconds;

  const send = (dueAt: number): Promise<void> =>
    new Promise((resolve) => {
      const fail = (reason: string): void => {
        errors.push(reason);
        resolve();
      };
      const signal = AbortSignal.timeout(ANSWER_MAX_MS);
      request(
        { port, host: "127.0.0.1", path: "/", headers: { host }, agent, signal },
        (answer) => {
          answer.resume();
          answer.once("end", () => {
            latencies.push(performance.now() - dueAt);
            if (answer.statusCode === 200) resolve();
            else fail(String(answer.statusCode));
          });
        },
      )
        .once("error", (error) => fail(error.message))
        .end();
    });

  const answers: Promise<void>[] = [];
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      // The first is due at the start.
      const due = Math.floor(((performance.now() - startedAt) / 1000) * requestsPerSecond) + 1;
      while (answers.length < Math.min(due, total)) {
        answers.push(send(startedAt + (answers.length / requestsPerSecond) * 1000));
      }
      if (answers.length < total) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
  await Promise.all(answers);
  agent.destroy();
  return {
    ...summarizeLatencies(latencies),
    requests: total,
    errors,
  };
}

process.once("message", (plan) => {
  void visit(plan as HonestPlan).then((result) => {
    process.send?.(result);
    process.disconnect();
  });
});
