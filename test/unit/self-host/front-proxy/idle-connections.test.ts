/** A visitor's connection between two requests. */
import { setImmediate } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { afterReads } from "../../../../self-host/front-proxy/after-reads.ts";
import { IDLE_MAX_MS, UPSTREAM_IDLE_MAX_MS } from "../../../../self-host/front-proxy/limits.ts";
import { FrontProxyStage, GET, OK } from "../../../harness/front-proxy-stage.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

let stage: FrontProxyStage;
beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterEach(() => stage.clear());
afterAll(() => stage.stop());

/** A visitor that has had the response to its first request. */
async function visitOnce() {
  const visitor = await stage.visit();
  visitor.send(GET);
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  server.send(OK);
  await visitor.waitFor(OK);
  return { visitor, server };
}

test("is kept when that to the server is closed, which the server would do soon", async () => {
  const { visitor, server: first } = await visitOnce();
  stage.passTime(UPSTREAM_IDLE_MAX_MS + 1_000);
  await vi.waitUntil(() => first.hasEnded, WAIT_OPTIONS);
  visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  const second = await stage.server(1);
  await second.waitFor("POST / ");
  second.send(OK);
  await visitor.waitFor(OK + OK);
});

test.each(["", "GET /"])("is closed when it stays idle, also with %j", async (start) => {
  const { visitor } = await visitOnce();
  visitor.send(start);
  stage.passTime(IDLE_MAX_MS - 1_000);
  expect(visitor.hasEnded).toBe(false);
  stage.passTime(IDLE_MAX_MS + 1_000);
  await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
});

test("is kept when the process had stopped, and the next request has arrived meanwhile", async () => {
  const { visitor, server } = await visitOnce();
  // Timers run next, and nothing is read before.
  await setImmediate();
  visitor.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  const { promise: checked, resolve } = Promise.withResolvers<void>();
  const checkDeadlines = () => {
    stage.passTime(IDLE_MAX_MS + 1_000);
    resolve();
  };
  setTimeout(afterReads(checkDeadlines), 1);
  // Until the timer is due.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  await checked;
  await server.waitFor("GET /next ");
  expect(visitor.hasEnded).toBe(false);
});
