/**
 * An agent whose UDP is blocked uses the WebSocket at once, and UDP again as soon as it works. Its clock is sped up during
 * the intervals of the protocol: 15 s between BINDs, 30 s between probes.
 */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { fastClock, speedUp } from "../../harness/preloads/fast-clock.ts";
import { startNetworkStack, type NetworkStack } from "../../harness/networks/stack.ts";
import { exchangeMany, ping, push } from "../../harness/networks/traffic.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const FAST = { env: fastClock(20) };

let stack: NetworkStack;

beforeAll(async () => {
  stack = await startNetworkStack();
});
beforeEach(() => stack.relay.udp.unblock());
afterAll(() => stack?.[Symbol.asyncDispose]());

test("UDP blocked at the start: the WebSocket carries the session, and UDP takes over when it works", async () => {
  await using network = await stack.createNetwork();
  stack.relay.udp.block();
  await using agent = await network.vpn(FAST);
  // Both messages of the handshake are sent over the WebSocket.
  const client = await network.connectClient();
  expect(await exchangeMany(client, 200)).toBeGreaterThanOrEqual(198);
  await network.waitForRelayState("websocket");
  stack.relay.udp.unblock();
  speedUp(agent.child);
  await network.waitForRelayState("udp");
  await push(network.server, client);
  // With its fast clock, an agent that a busy machine stops for a moment takes UDP for silent, and loses what is on its way.
  const isNearlyComplete = async () => (await exchangeMany(client, 200)) >= 198;
  await vi.waitUntil(isNearlyComplete, WAIT_OPTIONS);
  expect([client.handshakes(), agent.child.exitCode]).toEqual([1, null]);
});

test.each(["to-client", "to-server"] as const)(
  "UDP that fails later in one direction (%s): the session continues over the WebSocket",
  async (direction) => {
    await using network = await stack.createNetwork();
    await using agent = await network.serve("udp", FAST);
    const client = await network.connectClient();
    await ping(client);
    stack.relay.udp.block(direction);
    speedUp(agent.child);
    await push(network.server, client);
    await ping(client);
    await network.waitForRelayState("websocket");
    expect([client.handshakes(), agent.child.exitCode]).toEqual([1, null]);
    // New sessions work, too.
    await ping(await network.connectClient());
  },
);
