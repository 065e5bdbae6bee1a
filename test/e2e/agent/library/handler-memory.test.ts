/** What the library keeps of requests and tunnels that have ended: nothing. */
import { Agent, get } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startStack, type Stack } from "../../../harness/server/stack.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const MIB = 1024 * 1024;
const WARM_UP_REQUESTS = 600;
const REQUESTS = 1_000;
/** 2,000 bytes for each request would exceed it; one that is kept has at least its head, its signal and its body. */
const GROWTH_MAX_BYTES = 1.9 * MIB;
const CONCURRENCY = 20;
const ROUNDS = 20;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

let stack: Stack;
beforeAll(async () => void (stack = await startStack()));
afterAll(() => stack.stop());

/** Finalizers run between two collections, and free more. */
async function measureHeap(): Promise<number> {
  for (let i = 0; i < 5; i += 1) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
}

async function visitOften(count: number, name: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
  const host = `${name}.localhost`;
  const visit = () =>
    new Promise<void>((resolve, reject) => {
      const options = { port: stack.server.port, host: "127.0.0.1", headers: { host }, agent };
      get(options, (response) => response.resume().once("end", resolve)).once("error", reject);
    });
  const work = Array.from({ length: CONCURRENCY }, async () => {
    for (let i = 0; i < count / CONCURRENCY; i += 1) await visit();
  });
  await Promise.all(work);
  agent.destroy();
}

test("1,000 requests to a function leave nothing in the heap", { timeout: 120_000 }, async () => {
  await stack.expose({ fetch: () => new Response("ok"), subdomain: "heap" });
  await visitOften(WARM_UP_REQUESTS, "heap");
  const before = await measureHeap();
  await visitOften(REQUESTS, "heap");
  expect((await measureHeap()) - before).toBeLessThan(GROWTH_MAX_BYTES);
});

test("closed tunnels leave no handle, and no listener at their signal", async () => {
  const stop = new AbortController();
  const added = vi.spyOn(stop.signal, "addEventListener");
  const removed = vi.spyOn(stop.signal, "removeEventListener");
  const count = () => process.getActiveResourcesInfo().length;
  const before = count();
  for (let i = 0; i < ROUNDS; i += 1) {
    const options = { fetch: () => new Response(), subdomain: "rounds", signal: stop.signal };
    await (await stack.expose(options)).close();
  }
  expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([ROUNDS, ROUNDS]);
  await vi.waitUntil(() => count() <= before + 2, WAIT_OPTIONS);
});
