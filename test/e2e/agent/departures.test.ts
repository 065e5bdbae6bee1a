/** What the agent prints about visitors who leave, and what it does not wait for when it stops. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { CONNECTION_KEY_FIELD } from "../../../protocol/front-proxy/connection-key.ts";
import { CF_BLOB_HEADER } from "../../../shared/client-address.ts";
import { mintToken } from "../../harness/server/api.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { dial } from "../../harness/tunnel/raw-http.ts";

/** The first part of a response whose length is not known. */
const startResponse = (type: string, part = "data: 1\n\n") =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n\r\n${part}`;
const EVENTS = startResponse("text/event-stream");

let stack: Stack;
let origin: RawOrigin;
let token: Buffer;

beforeAll(async () => {
  [stack, origin] = await Promise.all([startStack(), startRawOrigin()]);
  token = Buffer.from((await mintToken(stack.owner)).wireBytes, "base64");
});
afterAll(async () => {
  await stack.stop();
  await origin.stop();
});
beforeEach(() => {
  origin.requests.length = 0;
});

const share = (name: string, ...more: string[]) =>
  runAgent(
    [
      ...["http", String(origin.port), "--server", stack.server.url, "--token-file", "TOKEN"],
      ...["--subdomain", name, "--inspect", "off", ...more],
    ],
    { token },
  );

/** Sends a request, and resolves when the local server has received it. @param total all requests that it has received then. */
async function request(name: string, line: string, total = 1): Promise<Socket> {
  const visitor = await dial(stack.server.port);
  visitor.write(`${line} HTTP/1.1\r\nHost: ${name}.localhost\r\nContent-Length: 0\r\n\r\n`);
  await vi.waitUntil(() => origin.requests.length === total, WAIT_OPTIONS);
  return visitor;
}

test("a visitor who leaves before the local server has answered is printed", async () => {
  origin.respond = () => "";
  await using agent = await share("leaves-early");
  await vi.waitUntil(() => agent.stdout.includes("Forwarding"), WAIT_OPTIONS);
  (await request("leaves-early", "GET /slow")).destroy();
  await vi.waitUntil(
    () => / --- GET \/slow [\d.]+ ms \(the visitor disconnected\)$/m.test(agent.stdout),
    WAIT_OPTIONS,
  );
});

test("a visitor who leaves a response that pauses is noticed", async () => {
  origin.respond = () => startResponse("text/plain");
  await using agent = await share("leaves-pause");
  await vi.waitUntil(() => agent.stdout.includes("Forwarding"), WAIT_OPTIONS);
  const visitor = await request("leaves-pause", "GET /log");
  await once(visitor, "data");
  visitor.destroy();
  await vi.waitUntil(
    () => / 200 GET \/log [\d.]+ ms \(the visitor disconnected\)$/m.test(agent.stdout),
    WAIT_OPTIONS,
  );
});

test("a visitor whose departure workerd has not noticed is no longer connected to the front proxy", async () => {
  origin.respond = () => EVENTS;
  await using agent = await share("leaves-silently", "--json");
  await agent.event("ready");
  // Stands for the connection of the front proxy, which would have closed it.
  const unclosed = connect(join(stack.server.dataDir, "run/public.sock"));
  const cf = JSON.stringify({ clientIp: "127.0.0.1", [CONNECTION_KEY_FIELD]: "departed" });
  unclosed.write(
    `GET /events HTTP/1.1\r\nHost: leaves-silently.localhost\r\n${CF_BLOB_HEADER}: ${cf}\r\n\r\n`,
  );
  const visitor = await request("leaves-silently", "GET /events", 2);
  expect(await agent.event("request")).toMatchObject({ abortReason: "the visitor disconnected" });
  expect(agent.stdout.match(/"event":"request"/g)).toHaveLength(1);
  visitor.destroy();
  unclosed.destroy();
});

test("a visitor who leaves an event stream is an event for programs", async () => {
  origin.respond = () => EVENTS;
  await using agent = await share("leaves-stream", "--json");
  await agent.event("ready");
  const visitor = await request("leaves-stream", "GET /events");
  await once(visitor, "data");
  visitor.destroy();
  expect(await agent.event("request")).toMatchObject({
    ...{ kind: "events", method: "GET", path: "/events", status: 200, bytesIn: 0, bytesOut: 9 },
    abortReason: "the visitor disconnected",
  });
});

test.each([
  ["GET", "does not wait for an event stream, which has no end", 0],
  ["POST", "waits for the event stream that answers a POST", 1],
])("a command that is stopped: %s %s", async (method, _, waited) => {
  const sockets: Socket[] = [];
  origin.respond = (_request, socket) => {
    sockets.push(socket);
    return EVENTS;
  };
  const name = `stops-${method.toLowerCase()}`;
  await using agent = await share(name, "--json");
  await agent.event("ready");
  const visitor = await request(name, `${method} /events`);
  await once(visitor, "data");
  agent.child.kill("SIGINT");
  if (waited > 0) {
    expect(await agent.event("stopping")).toEqual({ event: "stopping", openRequests: waited });
    for (const socket of sockets) socket.end();
  }
  expect(await agent.exit).toBe(0);
  expect(agent.stdout.includes("stopping")).toBe(waited > 0);
  visitor.destroy();
});
