/** Connections of agents that the front proxy passes on to the relay, which each test plays. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { LINGER_MAX_MS, UNREAD_MAX_MS } from "../../../../self-host/front-proxy/limits.ts";
import {
  API_HOST,
  CF_BLOB_FIELD,
  FrontProxyStage,
  GET,
  HANDSHAKE_FIELDS,
} from "../../../harness/front-proxy-stage.ts";
import { REQUESTS_IN_FLIGHT_MAX } from "../../../../self-host/front-proxy/queue/workerd-queues.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const getUpgrade = (path: string, protocol: string) =>
  `GET ${path} HTTP/1.1\r\nHost: ${API_HOST}\r\n${HANDSHAKE_FIELDS}Connection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
const CONTROL = getUpgrade("/relay/agent", "websocket");
const DATA = getUpgrade("/relay/stream", "underpass-stream.v1");
const accept = (protocol: string) =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;

let stage: FrontProxyStage;
beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterEach(() => stage.clear());
afterAll(() => stage.stop());

async function connectAgent(request: string, protocol: string) {
  const agent = await stage.visit();
  agent.send(`${request}early`);
  const relay = await stage.relay();
  await relay.waitFor(CF_BLOB_FIELD);
  expect(relay.received).not.toContain("early");
  relay.send(`${accept(protocol)}first`);
  await agent.waitFor(`${accept(protocol)}first`);
  await relay.waitFor("early");
  return { agent, relay };
}

test("a data connection's directions end separately, and no limit of visitors applies", async () => {
  const { agent, relay } = await connectAgent(DATA, "underpass-stream.v1");
  agent.send("last");
  agent.socket.end();
  await relay.waitFor("last");
  await vi.waitUntil(() => relay.hasEnded, WAIT_OPTIONS);
  stage.passTime(UNREAD_MAX_MS + LINGER_MAX_MS);
  relay.send("answer");
  relay.socket.end();
  await agent.waitFor("answer");
  await vi.waitUntil(() => agent.hasEnded && stage.closed === 1, WAIT_OPTIONS);
});

test("the relay's end of a control connection ends it, also when the agent stays", async () => {
  const { agent, relay } = await connectAgent(CONTROL, "websocket");
  relay.send("bye");
  relay.socket.end();
  await agent.waitFor("bye");
  await vi.waitUntil(() => agent.hasEnded, WAIT_OPTIONS);
  expect(stage.closed).toBe(0);
  stage.passTime(LINGER_MAX_MS + 1_000);
  await vi.waitUntil(() => stage.closed === 1 && relay.hasEnded, WAIT_OPTIONS);
});

test("an agent that leaves ends the connection to the relay", async () => {
  const { agent, relay } = await connectAgent(CONTROL, "websocket");
  agent.socket.resetAndDestroy();
  await vi.waitUntil(() => relay.hasEnded && stage.closed === 1, WAIT_OPTIONS);
});

test("a relay that is gone while the agent still sends ends the agent's connection", async () => {
  const { agent, relay } = await connectAgent(DATA, "underpass-stream.v1");
  relay.socket.destroy();
  await vi.waitUntil(() => agent.hasEnded, WAIT_OPTIONS);
  agent.send("more");
  await vi.waitUntil(() => stage.closed === 1, WAIT_OPTIONS);
});

test("a relay that does not run is an answer of 503", async () => {
  const agent = await stage.visit();
  agent.send(CONTROL);
  const relay = await stage.relay();
  relay.socket.destroy();
  await agent.waitFor("HTTP/1.1 503 ");
});

test("an agent's request waits for no turn at workerd", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  stage.probe = () => answered;
  for (let count = 0; count <= REQUESTS_IN_FLIGHT_MAX; count += 1) (await stage.visit()).send(GET);
  await vi.waitUntil(() => stage.queue.waitingCount > 0, WAIT_OPTIONS);
  const agent = await stage.visit();
  agent.send(DATA);
  await (await stage.relay()).waitFor("GET /relay/stream ");
  stage.probe = async () => {};
  answer();
});

test.each([
  getUpgrade("/relay/metrics", "websocket"),
  getUpgrade("/relay/agent/", "websocket"),
  getUpgrade("/relay", "websocket"),
  CONTROL.replace("Connection: Upgrade\r\n", ""),
])("everything else is a request to the API: %j", async (request) => {
  const visitor = await stage.visit();
  visitor.send(request);
  await vi.waitUntil(() => stage.arrivedAtApi.length === 1, WAIT_OPTIONS);
  expect(stage.arrivedAtRelay).toEqual([]);
});

test("at another host the path is the tunnel's", async () => {
  const visitor = await stage.visit();
  visitor.send(CONTROL.replace(API_HOST, "shop.example"));
  await (await stage.server()).waitFor("GET /relay/agent ");
});
