/** WireGuard sessions of private networks through a real relay and a real agent, without failures. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DATAGRAM_PAYLOAD_MAX_BYTES } from "../../../relay/udp/network-association.ts";
import type { Device } from "../../../protocol/schemas/networks.ts";
import type { RunningAgent } from "../../harness/tunnel/agent.ts";
import {
  startNetworkStack,
  type NetworkStack,
  type TestNetwork,
} from "../../harness/networks/stack.ts";
import { exchangeMany, ping, push } from "../../harness/networks/traffic.ts";
import { fastTimers } from "../../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { startUdpProxy } from "../../harness/relay/udp-proxy.ts";
import { DATA_OVERHEAD_BYTES } from "../../harness/wireguard/session.ts";
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

describe("a session", () => {
  test("begins with a handshake, and carries data in both directions", async () => {
    const client = await network.connectClient();
    client.send("from the client");
    await client.waitForPayload("from the client");
    network.server.send("from the server", client.publicKey);
    await client.waitForPayload("from the server");
    expect(network.server.texts(client.publicKey)).toContain("from the client");
  });

  test("of each client has its own endpoint at the server, as without a relay", async () => {
    const [one, other] = [await network.connectClient(), await network.connectClient()];
    await Promise.all([exchangeMany(one, 100), exchangeMany(other, 100)]);
    expect(network.server.endpoint(one.publicKey)).not.toEqual(
      network.server.endpoint(other.publicKey),
    );
    expect(new Set(network.server.texts(one.publicKey)).size).toBeGreaterThanOrEqual(100);
    const textsOfOne = new Set(network.server.texts(one.publicKey));
    expect(network.server.texts(other.publicKey).filter((text) => textsOfOne.has(text))).toEqual(
      [],
    );
  });

  test("is renewed by either end", async () => {
    const client = await network.connectClient();
    await client.handshake(network.endpoint, network.server.publicKey);
    await ping(client);
    await network.server.handshake(network.server.endpoint(client.publicKey), client.publicKey);
    await ping(client);
    expect(network.server.handshakes(client.publicKey)).toBe(3);
  });

  test("continues without a handshake in both directions when the client changes its port", async () => {
    const client = await network.connectClient();
    await ping(client);
    await client.rebind();
    await ping(client);
    await push(network.server, client);
    expect([client.handshakes(), network.server.handshakes(client.publicKey)]).toEqual([1, 1]);
  });

  test("carries datagrams up to the maximum size, and survives larger ones", async () => {
    const client = await network.connectClient();
    const largest = DATAGRAM_PAYLOAD_MAX_BYTES - DATA_OVERHEAD_BYTES;
    for (const length of [1, 15, 16, 1_392, 9_000, largest]) {
      const text = "x".repeat(length);
      client.send(text);
      await client.waitForPayload(text);
    }
    // Fits into a UDP datagram, but not together with the header between relay and agent.
    client.send("y".repeat(largest + 1));
    await ping(client);
  });
});

describe("a path with loss, duplicates and reordering", () => {
  const FAULTS = { loss: 0.1, duplicates: 0.1, reordered: 0.2, seed: 7 };

  test("between client and relay delivers repeated datagrams, and no datagram twice", async () => {
    await using path = await startUdpProxy(network.endpoint.port);
    path.setFaults(FAULTS);
    const client = await network.connectClient({ address: "127.0.0.1", port: path.port });
    for (let round = 0; round < 20; round += 1) await ping(client);
    expect(await exchangeMany(client, 300)).toBeGreaterThan(150);
    const { replayed } = network.server.rejected;
    expect(replayed).toBeGreaterThan(0);
  });

  test("between relay and agent does the same, and the agent uses UDP", async () => {
    const client = await network.connectClient();
    stack.relay.udp.setFaults(FAULTS);
    for (let round = 0; round < 20; round += 1) await ping(client);
    expect(await exchangeMany(client, 300)).toBeGreaterThan(150);
    stack.relay.udp.setFaults({});
    // With this loss the agent may have used WebSocket in between.
    await expect.poll(async () => (await network.read()).relay.state, WAIT_OPTIONS).toBe("udp");
    await expect
      .poll(async () => (await network.read()).relay.loss, WAIT_OPTIONS)
      .toBeGreaterThan(0.02);
  });

  test("whose NAT forgets the agent's mapping works again with the next BIND", async () => {
    const client = await network.connectClient();
    await stack.relay.udp.rebind();
    await push(network.server, client);
    await ping(client);
    expect(client.handshakes()).toBe(1);
  });
});

describe("the API", () => {
  test("has each device's last handshake, address and traffic", async () => {
    const client = await createPeer();
    const enrolled = await stack.owner.post<{ device: Device }>(
      `/private-networks/${network.id}/devices`,
      { name: "laptop", public_key: client.publicKey },
    );
    expect(enrolled.status).toBe(201);
    const before = Date.now();
    await client.handshake(network.endpoint, network.server.publicKey);
    await exchangeMany(client, 50);
    const read = async () =>
      (await stack.owner.get<Device[]>(`/private-networks/${network.id}/devices`)).body[0];
    const endpoint = `127.0.0.1:${client.port}`;
    await expect.poll(async () => (await read())?.endpoint, WAIT_OPTIONS).toBe(endpoint);
    for (const bytes of ["rx_bytes", "tx_bytes"] as const)
      await expect.poll(async () => (await read())?.[bytes], WAIT_OPTIONS).toBeGreaterThan(50 * 32);
    const device = await read();
    expect(Date.parse(device?.last_handshake_at ?? "")).toBeGreaterThanOrEqual(before - 1_000);
    await client.close();
  });

  test("reports, as the agent does, when nothing listens behind the agent and when a server listens again", async () => {
    const { port } = network.server;
    const client = await network.connectClient();
    await network.server.close();
    client.send("into the void");
    const isListening = async () => (await network.read()).relay.server_listening;
    await expect.poll(isListening, WAIT_OPTIONS).toBe(false);
    await expect
      .poll(() => agent.stdout, WAIT_OPTIONS)
      .toMatch(/"event":"path".*"isLocalListening":false/);
    await network.server.bind(port);
    await ping(client);
    await expect.poll(isListening, WAIT_OPTIONS).toBe(true);
  });

  test("counts handshakes for another key: a device has an old configuration", async () => {
    await using other = await createPeer();
    await using client = await createPeer();
    for (let tries = 0; tries < 3; tries += 1) client.initiate(network.endpoint, other.publicKey);
    await expect
      .poll(async () => (await network.read()).relay.wrong_key_handshakes, WAIT_OPTIONS)
      .toBe(3);
    expect(client.handshakes(other.publicKey)).toBe(0);
  });
});

test("two networks of one relay have separate ports and share nothing", async () => {
  await using second = await stack.createNetwork();
  await using running = await second.serve();
  expect(second.endpoint.port).not.toBe(network.endpoint.port);
  const [one, two] = [await network.connectClient(), await second.connectClient()];
  await Promise.all([exchangeMany(one, 100), exchangeMany(two, 100)]);
  expect(second.server.texts(one.publicKey)).toEqual([]);
  expect(network.server.texts(two.publicKey)).toEqual([]);
  // A client of one network completes no handshake at the other's port.
  one.initiate(second.endpoint, network.server.publicKey);
  await expect
    .poll(async () => (await second.read()).relay.wrong_key_handshakes, WAIT_OPTIONS)
    .toBe(1);
  expect(running.child.exitCode).toBe(null);
});
