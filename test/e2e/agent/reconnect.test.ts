import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { ExposedTunnel } from "../../../agent/expose.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { startFaultyProxy, type FaultyProxy } from "../../harness/tunnel/faulty-proxy.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

let stack: Stack;
let origin: RawOrigin;
let relay: FaultyProxy;
let tunnel: ExposedTunnel;

beforeAll(async () => {
  [stack, origin] = await Promise.all([startStack(), startRawOrigin()]);
  relay = await startFaultyProxy(stack.server.port);
  tunnel = await stack.expose({ server: relay.url, port: origin.port, subdomain: "reconnect" });
});
afterAll(async () => {
  await stack.stop();
  await relay[Symbol.asyncDispose]();
  await origin.stop();
});
beforeEach(() => {
  origin.requests.length = 0;
  origin.respond = () => OK;
});

test("after each of five losses in a row the URL is the same, and visitors who wait are answered", async () => {
  const { url } = tunnel;
  for (let round = 1; round <= 5; round += 1) {
    const reconnected = once(tunnel.events, "reconnected");
    relay.cut();
    const { status, body } = await stack.visit("reconnect", `/${round}`);
    expect([status, body.toString()]).toEqual([200, "ok"]);
    expect(await reconnected).toMatchObject([{ url }]);
  }
  expect(origin.requests.map(({ target }) => target)).toEqual(["/1", "/2", "/3", "/4", "/5"]);
});

test("both ends detect a connection that silently fails, and the agent replaces it", async () => {
  const before = relay.connections;
  const disconnected = once(tunnel.events, "disconnected");
  relay.freeze();
  // The server detects it because a visitor waits, the agent because its heartbeat is not answered.
  const answer = stack.visit("reconnect");
  await disconnected;
  expect((await answer).status).toBe(200);
  expect(relay.connections).toBe(before + 1);
  expect(origin.requests).toHaveLength(1);
});

test("a request that may have done something is not sent again", async () => {
  origin.respond = () => undefined;
  const answer = stack.visit("reconnect", "/order", "", "POST");
  await expect.poll(() => origin.requests.length, WAIT_OPTIONS).toBe(1);
  relay.cut();
  const { status, headers } = await answer;
  expect([status, Object.fromEntries(headers)["underpass-error"]]).toEqual([502, "agent_offline"]);
  origin.respond = () => OK;
  expect((await stack.visit("reconnect")).status).toBe(200);
  expect(origin.requests.map(({ method }) => method)).toEqual(["POST", "GET"]);
});
