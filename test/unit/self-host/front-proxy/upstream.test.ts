/** Connections to the server, and which of them the next request is sent on. */
import { createServer, type Socket } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { DISCARDED_BODY_MAX_BYTES } from "../../../../self-host/front-proxy/limits.ts";
import { UpstreamConnection } from "../../../../self-host/front-proxy/upstream.ts";
import type { ConnectionEnd } from "../../../harness/connection-end.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { FrontProxyStage, GET, OK } from "../../../harness/front-proxy-stage.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const POST = "POST / HTTP/1.1\r\nHost: a\r\n";
let stage: FrontProxyStage;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

async function answer(visitor: ConnectionEnd, server: ConnectionEnd, end: string): Promise<void> {
  await server.waitFor(end);
  visitor.received = "";
  server.send(OK);
  await visitor.waitFor(OK);
}

function formatUpload(bytes: number): string {
  return `${POST}Content-Length: ${bytes}\r\n\r\n${"x".repeat(bytes - 1)}.`;
}

test.each([
  ["a large body", formatUpload(DISCARDED_BODY_MAX_BYTES + 1), "x."],
  ["a body of unknown length", `${POST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, "0\r\n\r\n"],
])(
  "after a request with %s, which the server need not read, its close does not affect the next one",
  async (_, upload, end) => {
    const visitor = await stage.visit();
    visitor.send(upload);
    const first = await stage.server();
    await answer(visitor, first, end);
    visitor.send(GET.replace("GET", "DELETE"));
    const second = await stage.server(1);
    first.socket.end();
    await answer(visitor, second, "\r\n\r\n");
    await vi.waitUntil(() => first.hasEnded, WAIT_OPTIONS);
    expect(visitor.hasEnded).toBe(false);
  },
);

test("after a request with a small body, the next one uses the same connection", async () => {
  const visitor = await stage.visit();
  visitor.send(formatUpload(DISCARDED_BODY_MAX_BYTES));
  const server = await stage.server();
  await answer(visitor, server, "x.");
  visitor.send(GET);
  await answer(visitor, server, "GET / ");
  expect(stage.arrived).toHaveLength(1);
});

test("a released connection whose other end closes it is not waited for any more", async () => {
  const path = join(await createTemporaryDir(), "server.sock");
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const accepted = once(server, "connection");
  // As long as the visitor has not read the response, nothing more is read.
  const events = { onReceive: vi.fn(() => false), onWritten: vi.fn(), onEnd: vi.fn() };
  const upstream = new UpstreamConnection(
    { apiHosts: new Set(), upstreamPaths: { tunnel: path, api: path } },
    events,
  );
  upstream.forward([Buffer.alloc(10_000_000)]);
  const [socket] = (await accepted) as [Socket];
  socket.write(OK);
  await vi.waitUntil(() => events.onReceive.mock.calls.length > 0, WAIT_OPTIONS);
  upstream.release();
  upstream.resume();
  expect([upstream.isOpen, upstream.isFlushed]).toEqual([false, false]);
  socket.destroy();
  await vi.waitUntil(() => upstream.isFlushed, WAIT_OPTIONS);
  expect(events.onWritten).toHaveBeenCalled();
  expect(events.onEnd).not.toHaveBeenCalled();
});
