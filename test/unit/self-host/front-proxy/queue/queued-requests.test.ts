/** A visitor's request that waits for its turn, because the server is busy with others. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { QUEUED_MAX_MS } from "../../../../../self-host/front-proxy/limits.ts";
import type { QueuedItem } from "../../../../../self-host/front-proxy/queue/fair-queue.ts";
import { REQUESTS_IN_FLIGHT_MAX } from "../../../../../self-host/front-proxy/queue/workerd-queues.ts";
import { FrontProxyStage, GET, OK } from "../../../../harness/front-proxy-stage.ts";
import type { ConnectionEnd } from "../../../../harness/connection-end.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

let stage: FrontProxyStage;
let others: QueuedItem[];

beforeAll(async () => {
  stage = await FrontProxyStage.start();
  stage.probe = () => new Promise(() => {});
});
beforeEach(() => {
  others = Array.from({ length: REQUESTS_IN_FLIGHT_MAX }, addOther);
});
afterEach(async () => {
  for (const other of others) other.end();
  await stage.clear();
});
afterAll(() => stage.stop());

function addOther(): QueuedItem {
  return stage.queue.add({ bytes: 0, findSource: () => "other", send: () => undefined })!;
}

const POST = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";

/** A visitor whose request waits. */
async function visitAndWait(text: string): Promise<ConnectionEnd> {
  const visitor = await stage.visit();
  visitor.send(text);
  await vi.waitUntil(() => stage.queue.waitingCount === 1, WAIT_OPTIONS);
  return visitor;
}

test("goes on with its body, and with the requests that follow it", async () => {
  const visitor = await visitAndWait(POST + GET);
  expect(stage.arrived).toEqual([]);
  others[0]!.end();
  const server = await stage.server();
  await server.waitFor("\r\n\r\nabc");
  expect(stage.queue.waitingCount).toBe(0);
  server.send(OK);
  await server.waitFor("abcGET / ");
  server.send(OK);
  await visitor.waitFor(OK + OK);
});

test("is answered with 503 when it waits too long", async () => {
  const visitor = await visitAndWait(GET);
  stage.passTime(QUEUED_MAX_MS - 1_000);
  expect(stage.queue.waitingCount).toBe(1);
  stage.passTime(QUEUED_MAX_MS + 1_000);
  await visitor.waitFor("HTTP/1.1 503 Service Unavailable");
  // It may wait behind requests that workerd does not answer, although they are few.
  await visitor.waitFor("The server does not answer now.");
  expect(visitor.received).toMatch(/\r\nretry-after: 10\r\n/);
  expect(stage.queue.waitingCount).toBe(0);
});

test("is never sent when the visitor leaves", async () => {
  const visitor = await visitAndWait(GET);
  visitor.socket.destroy();
  await vi.waitUntil(() => stage.queue.waitingCount === 0, WAIT_OPTIONS);
  others[0]!.end();
  expect(stage.arrived).toEqual([]);
});

test("is answered with 503 when too many bytes wait", async () => {
  const visitor = await stage.visit();
  visitor.send(GET.replace("/", `/${"x".repeat(2_000)}`));
  await visitor.waitFor("HTTP/1.1 503 Service Unavailable");
});

test("goes on when the server has closed the connection of an earlier request meanwhile", async () => {
  others[0]!.end();
  const visitor = await stage.visit();
  visitor.send(GET);
  const earlier = await stage.server();
  await earlier.waitFor("\r\n\r\n");
  earlier.send(OK);
  await visitor.waitFor(OK);
  others[0] = addOther();
  visitor.send(GET);
  await vi.waitUntil(() => stage.queue.waitingCount === 1, WAIT_OPTIONS);
  earlier.socket.destroy();
  // The proxy has noticed it when it has answered another visitor, who comes later.
  const other = await stage.visit();
  other.send("GET / HTTP/1.1\r\n\r\n");
  await other.waitFor("HTTP/1.1 400 ");
  others[0].end();
  const later = await stage.server(1);
  await later.waitFor("\r\n\r\n");
  later.send(OK);
  await visitor.waitFor(OK + OK);
});
