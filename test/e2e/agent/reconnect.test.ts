/**
 * Agents that lose their connection, through a network that fails. Their clock is sped up while they wait to connect again,
 * or to detect a silent connection.
 */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { fastClock, speedUp } from "../../harness/preloads/fast-clock.ts";
import { mintToken, startApi, type TestApi } from "../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { runAgent, type RunningAgent } from "../../harness/tunnel/agent.ts";
import { startFaultProxy, type FaultProxy } from "../../../chaos/faults/fault-proxy.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";

let api: TestApi;
let origin: RawOrigin;
let relay: FaultProxy;
let token: Buffer;

beforeAll(async () => {
  [api, origin] = await Promise.all([startApi(), startRawOrigin()]);
  relay = await startFaultProxy(api.server.port);
  token = Buffer.from((await mintToken(await api.owner())).wireBytes, "base64");
});
afterAll(async () => {
  await api.stop();
  await relay[Symbol.asyncDispose]();
  await origin.stop();
});
beforeEach(() => {
  origin.requests.length = 0;
  origin.respond = () => OK;
});

async function startAgent(): Promise<RunningAgent> {
  const options = ["--server", relay.url, "--token-file", "TOKEN", "--subdomain", "reconnect"];
  const env = fastClock(10);
  const agent = await runAgent(["http", String(origin.port), ...options], { token, env });
  await waitForLines(agent, "Forwarding ", 1);
  return agent;
}

/** @returns the lines that begin with this after the time, without it, when there are as many. */
function waitForLines(agent: RunningAgent, beginning: string, count: number): Promise<string[]> {
  return vi.waitUntil(() => {
    const texts = agent.stdout.split("\n").map((line) => line.slice(line.indexOf(" ") + 1));
    const lines = texts.filter((text) => text.startsWith(beginning));
    return lines.length === count && lines;
  }, WAIT_OPTIONS);
}

const visit = (path = "/", method = "GET") =>
  exchange(
    api.server.port,
    `${method} ${path} HTTP/1.1\r\nHost: reconnect.localhost:${api.server.port}\r\n\r\n`,
  );

test("after each of five losses in a row the URL is the same, and visitors who wait are answered", async () => {
  await using agent = await startAgent();
  const [ready = ""] = await waitForLines(agent, "Forwarding ", 1);
  const [, url] = ready.split(" ");
  speedUp(agent.child);
  for (let round = 1; round <= 5; round += 1) {
    relay.cut();
    const { status, body } = await visit(`/${round}`);
    expect([status, body.toString()]).toEqual([200, "ok"]);
    const reconnected = await waitForLines(agent, "reconnected: ", round);
    expect(reconnected.at(-1)).toBe(`reconnected: ${url}`);
  }
  expect(origin.requests.map(({ target }) => target)).toEqual(["/1", "/2", "/3", "/4", "/5"]);
});

test("an agent detects a connection that silently fails and replaces it, and a visitor who waits is answered", async () => {
  await using agent = await startAgent();
  const before = relay.acceptedConnections;
  relay.freeze();
  const answer = visit();
  speedUp(agent.child);
  await waitForLines(agent, "disconnected: ", 1);
  expect((await answer).status).toBe(200);
  expect(relay.acceptedConnections).toBe(before + 1);
  expect(origin.requests).toHaveLength(1);
});

test("a request that may have done something is not sent again", async () => {
  await using _agent = await startAgent();
  origin.respond = () => undefined;
  const answer = visit("/order", "POST");
  await expect.poll(() => origin.requests.length, WAIT_OPTIONS).toBe(1);
  relay.cut();
  const { status, headers } = await answer;
  expect([status, Object.fromEntries(headers)["underpass-error"]]).toEqual([502, "agent_offline"]);
  origin.respond = () => OK;
  expect((await visit()).status).toBe(200);
  expect(origin.requests.map(({ method }) => method)).toEqual(["POST", "GET"]);
});
