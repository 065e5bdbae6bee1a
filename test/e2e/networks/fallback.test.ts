/**
 * An agent whose UDP is blocked uses the WebSocket at once, and UDP again as soon as it works. The tests wait for the
 * real intervals of the protocol (15 s between BINDs, 30 s between probes). They run concurrently, each with its own relay.
 */
import { afterAll, beforeAll, test } from "vitest";
import { UDP_PROBE_INTERVAL_MS } from "../../../agent/relay-client/udp-path.ts";
import { startNetworkStack, type NetworkStack } from "../../harness/networks/stack.ts";
import { exchangeMany, ping, push } from "../../harness/networks/traffic.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

/** Until the next probe, with time for a busy machine. */
const PROBE_WAIT_OPTIONS = {
  ...WAIT_OPTIONS,
  timeout: UDP_PROBE_INTERVAL_MS + WAIT_OPTIONS.timeout,
};

let stack: NetworkStack;

beforeAll(async () => {
  stack = await startNetworkStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test.concurrent("UDP blocked at the start: the WebSocket carries the session, and UDP takes over when it works", async ({
  expect,
}) => {
  const relay = await stack.startRelay("blocked-at-start");
  await using network = await stack.createNetwork({ relayId: relay.id });
  relay.udp.block();
  await using agent = await network.vpn();
  // Both messages of the handshake are sent over the WebSocket.
  const client = await network.connectClient();
  expect(await exchangeMany(client, 200)).toBeGreaterThanOrEqual(198);
  await network.waitForRelayState("websocket");
  relay.udp.unblock();
  await expect.poll(async () => (await network.read()).relay.state, PROBE_WAIT_OPTIONS).toBe("udp");
  await push(network.server, client);
  expect(await exchangeMany(client, 200)).toBeGreaterThanOrEqual(198);
  expect([client.handshakes(), agent.child.exitCode]).toEqual([1, null]);
}, 180_000);

test.concurrent.for(["to-client", "to-server"] as const)(
  "UDP that fails later in one direction (%s): the session continues over the WebSocket",
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
    // New sessions work, too.
    await ping(await network.connectClient());
  },
);
