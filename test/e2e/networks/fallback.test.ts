/**
 * An agent whose UDP is blocked: WebSocket at once, and UDP again when it can. These tests wait for the natural
 * intervals of the protocol (15 s between BINDs, 30 s between probes), side by side: each has a relay of its own.
 */
import { afterAll, beforeAll, test } from "vitest";
import { UDP_PROBE_INTERVAL_MS } from "../../../agent/relay-client/udp-path.ts";
import { startNetworkStack, type NetworkStack } from "../../harness/networks/stack.ts";
import { exchangeMany, ping, push } from "../../harness/networks/traffic.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

/** One probe, and the time that a busy machine takes. */
const PROBED = { ...WAIT_OPTIONS, timeout: UDP_PROBE_INTERVAL_MS + WAIT_OPTIONS.timeout };

let stack: NetworkStack;

beforeAll(async () => {
  stack = await startNetworkStack();
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
});

test.concurrent(
  "UDP blocked at the start: the WebSocket carries the session, and UDP takes over when it can",
  async ({ expect }) => {
    const relay = await stack.startRelay("blocked-at-start");
    await using network = await stack.createNetwork({ relayId: relay.id });
    relay.udp.block();
    await using agent = await network.vpn();
    // Both of the handshake's messages go over the WebSocket.
    const client = await network.connectClient();
    expect(await exchangeMany(client, 200)).toBeGreaterThanOrEqual(198);
    await network.waitForRelayState("websocket");
    relay.udp.unblock();
    await expect.poll(async () => (await network.read()).relay.state, PROBED).toBe("udp");
    await push(network.server, client);
    expect(await exchangeMany(client, 200)).toBeGreaterThanOrEqual(198);
    expect([client.handshakes(), agent.child.exitCode]).toEqual([1, null]);
  },
  180_000,
);

test.concurrent.for(["to-client", "to-server"] as const)(
  "UDP that dies midway in one direction (%s): the session goes on over the WebSocket",
  { timeout: 180_000 },
  async (direction, { expect }) => {
    const relay = await stack.startRelay(`dies-${direction}`);
    await using network = await stack.createNetwork({ relayId: relay.id });
    await using agent = await network.serve();
    const client = await network.connectClient();
    await ping(client);
    relay.udp.block(direction);
    await push(network.server, client);
    await ping(client);
    await network.waitForRelayState("websocket");
    expect([client.handshakes(), agent.child.exitCode]).toEqual([1, null]);
    // A second session is no different.
    await ping(await network.connectClient());
  },
);
