/** Responses to uploads of which the server has not read everything, or has got nothing yet. */
import { setImmediate } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import {
  CONTINUE_AFTER_MS,
  HELD_MAX_MS,
  LINGER_PAUSE_MAX_MS,
} from "../../../../self-host/front-proxy/limits.ts";
import type { ConnectionEnd } from "../../../harness/connection-end.ts";
import { CF_BLOB_FIELD, FrontProxyStage, GET, OK } from "../../../harness/front-proxy-stage.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

let stage: FrontProxyStage;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

test("a visitor gets all of it while still sending", async () => {
  const visitor = await stage.visit();
  visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n");
  const origin = await stage.server();
  await origin.waitFor("\r\n\r\n");
  origin.socket.pause();
  const answer = `HTTP/1.1 413 Too Large\r\nContent-Length: 100000\r\n\r\n${"a".repeat(100_000)}`;
  // Sent and closed while the visitor's bytes are unread: a failed write must not discard the answer.
  origin.socket.end(answer);
  origin.socket.destroySoon();
  for (let sent = 0; sent < 20_000_000; sent += 500_000) visitor.send("b".repeat(500_000));
  await visitor.waitFor(answer);
  visitor.socket.end();
  await vi.waitUntil(() => visitor.isClosed, WAIT_OPTIONS);
});

/** A visitor who got the whole response to an upload of which the server has read a part, and has closed its connection. */
async function answerEarly(bytes: number): Promise<ConnectionEnd> {
  const visitor = await stage.visit();
  visitor.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\nb`);
  const origin = await stage.server();
  await origin.waitFor("\r\n\r\nb");
  origin.socket.end(OK);
  await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
  await visitor.waitFor(OK);
  return visitor;
}

test("after it, a visitor may send the rest of the upload, which is dropped, and the next request", async () => {
  const visitor = await answerEarly(20_000_000);
  visitor.send("b".repeat(19_999_999) + GET);
  const next = await stage.server(1);
  await next.waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}`);
  expect(next.received).not.toContain("b");
  next.send(OK);
  await visitor.waitFor(OK + OK);
});

test("after it, a visitor who does not go on with the upload is disconnected", async () => {
  const visitor = await answerEarly(3);
  expect(visitor.hasEnded).toBe(false);
  stage.passTime(LINGER_PAUSE_MAX_MS + 1);
  await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
});

test("before it ends, a visitor who leaves while the server reads nothing is noticed in the end", async () => {
  const visitor = await stage.visit();
  visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n");
  const origin = await stage.server();
  await origin.waitFor("\r\n\r\n");
  origin.socket.pause();
  const start = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
  origin.send(start);
  await visitor.waitFor(start);
  visitor.send("b".repeat(19_000_000));
  visitor.socket.end();
  stage.passTime(HELD_MAX_MS - 1_000);
  expect(stage.closed).toBe(0);
  // The buffers of the connection to the server must be full first.
  await vi.waitUntil(() => {
    stage.passTime(HELD_MAX_MS + 1_000);
    return stage.closed === 1;
  }, WAIT_OPTIONS);
});

const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";
const EXPECTANT = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";

test("a visitor that waits with the body of its request is invited to send it", async () => {
  const visitor = await stage.visit();
  visitor.send(EXPECTANT);
  await visitor.waitFor(CONTINUE);
  visitor.send("hi");
  const origin = await stage.server();
  await origin.waitFor("\r\n\r\nhi");
  origin.send(OK);
  await visitor.waitFor(CONTINUE + OK);
});

test.each([
  ["when the response is there", "", OK],
  ["when it has sent a part", "h", ""],
])("a visitor is not invited %s", async (_, body, response) => {
  const visitor = await stage.visit();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  visitor.send(EXPECTANT + body);
  await waitWithoutTimers(() => stage.arrived[0]?.received.endsWith(`\r\n\r\n${body}`) ?? false);
  const origin = stage.arrived[0]!;
  origin.send(response);
  await waitWithoutTimers(() => visitor.received === response);
  vi.advanceTimersByTime(CONTINUE_AFTER_MS);
  vi.useRealTimers();
  visitor.send("hi".slice(body.length));
  await origin.waitFor("hi");
  if (response === "") origin.send(OK);
  await visitor.waitFor(OK);
  expect(visitor.received).toBe(OK);
});

async function waitWithoutTimers(isMet: () => boolean): Promise<void> {
  while (!isMet()) await setImmediate();
}
