/** Private networks when the relay, an agent or the API fails. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  startNetworkStack,
  type NetworkStack,
  type TestNetwork,
} from "../../harness/networks/stack.ts";
import { ping, push } from "../../harness/networks/traffic.ts";
import { fastTimers } from "../../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import type { RunningAgent } from "../../harness/tunnel/agent.ts";
import type { Device } from "../../../protocol/schemas/networks.ts";
import { mintToken } from "../../harness/server/api.ts";
import { createPeer } from "../../harness/wireguard/peer.ts";

let stack: NetworkStack;
let network: TestNetwork;
let agent: RunningAgent;

beforeAll(async () => {
  // For what relays and agents do at intervals: reports every two seconds, BINDs every fifteen, and others.
  stack = await startNetworkStack({ env: fastTimers(10) });
  network = await stack.createNetwork();
  agent = await network.serve();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe("a relay", () => {
  test.each(["SIGTERM", "SIGKILL"] as const)(
    "that is restarted (%s) keeps the session: no handshake, and the server may send first",
    async (signal) => {
      const client = await network.connectClient();
      await ping(client);
      await stack.relay.stop(signal);
      client.send("lost");
      network.server.send("lost too", client.publicKey);
      await stack.relay.start();
      await push(network.server, client);
      await ping(client);
      expect([client.handshakes(), network.server.handshakes(client.publicKey)]).toEqual([1, 1]);
      expect(agent.child.exitCode).toBe(null);
      await network.waitForRelayState("udp");
    },
  );

  test("that is restarted keeps the session of a client that changes its port meanwhile", async () => {
    const client = await network.connectClient();
    await ping(client);
    await stack.relay.stop();
    await client.rebind();
    await stack.relay.start();
    await ping(client);
    expect(client.handshakes()).toBe(1);
  });

  test("that has crashed is reported as offline, and the agent waits for it", async () => {
    await stack.relay.stop("SIGKILL");
    await network.waitForRelayState("offline");
    expect(agent.child.exitCode).toBe(null);
    await stack.relay.start();
    await network.waitForRelayState("udp");
    await ping(await network.connectClient());
  });

  test("that lost the connection to an agent accepts the same agent again", async () => {
    const client = await network.connectClient();
    stack.relay.tcp.cut();
    await push(network.server, client);
    await ping(client);
    expect(client.handshakes()).toBe(1);
  });

  test("without a free port refuses a network with 503, until a port is released", async () => {
    const { id: relayId } = await stack.startRelay("small", { ports: 2 });
    // One organization gets only half of the ports.
    await using _ = await stack.createNetwork({ relayId, owner: await stack.api.owner() });
    await using own = await stack.createNetwork({ relayId });
    await expect(stack.createNetwork({ relayId })).rejects.toThrow(/503.*unavailable/);
    await stack.owner.delete(`/private-networks/${own.id}`);
    // The organization that released a port may use it again at once.
    await using last = await stack.createNetwork({ relayId });
    expect(last.endpoint.port).toBeGreaterThan(0);
  });
});

describe("an agent", () => {
  test("that is started a second time takes over, and the first one reports that it was replaced", async () => {
    const second = await network.vpn();
    expect(await agent.exit).toBe(1);
    expect(agent.stdout + agent.stderr).toContain("replaced");
    agent = second;
    await network.waitForRelayState("udp");
    await ping(await network.connectClient());
  });

  test("whose token is revoked exits, and clients no longer reach the server", async () => {
    await using own = await stack.createNetwork();
    const { nonce, wireBytes } = await mintToken(stack.owner);
    await using revoked = await own.vpn({ token: Buffer.from(wireBytes, "base64") });
    await own.waitForRelayState("udp");
    const client = await own.connectClient();
    await ping(client);
    expect((await stack.owner.delete(`/tokens/${nonce}`)).status).toBe(200);
    expect(await revoked.exit).toBe(1);
    await own.waitForRelayState("offline");
    const before = own.server.received.length;
    client.send("too late");
    await ping(await network.connectClient());
    expect(own.server.received).toHaveLength(before);
  });

  test("of a network that is deleted exits", async () => {
    const own = await stack.createNetwork();
    const running = await own.serve();
    expect((await stack.owner.delete(`/private-networks/${own.id}`)).status).toBe(200);
    expect(await running.exit).toBe(1);
  });

  test("serves the network with its new key when another server is registered", async () => {
    await using own = await stack.createNetwork();
    await using running = await own.serve();
    await ping(await own.connectClient());
    const newServer = await own.replaceServer();
    await using client = await createPeer();
    await client.handshake(own.endpoint, newServer.publicKey);
    await ping(client);
    expect(running.child.exitCode).toBe(null);
  });
});

test("a revoked device is not listed; its peer remains until the configuration is applied", async () => {
  const client = await network.connectClient();
  const path = `/private-networks/${network.id}/devices`;
  const { body } = await stack.owner.post<{ device: Device }>(path, {
    name: "phone",
    public_key: client.publicKey,
  });
  expect((await stack.owner.delete(`${path}/${body.device.id}`)).status).toBe(200);
  expect((await stack.owner.get<Device[]>(path)).body).toEqual([]);
  await ping(client);
});

test("while the API is down the network works, also for new sessions", async () => {
  const client = await network.connectClient();
  const workerd = await stack.api.server.getPid("workerd");
  process.kill(workerd, "SIGSTOP");
  try {
    await ping(client);
    await ping(await network.connectClient());
  } finally {
    process.kill(workerd, "SIGCONT");
  }
  await expect.poll(async () => (await network.read()).relay.state, WAIT_OPTIONS).toBe("udp");
  await ping(client);
});
