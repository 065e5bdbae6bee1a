/** What `underpass vpn` shows, at a terminal, in a log and as JSON: with a real relay and WireGuard peers. */
import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PrivateNetwork } from "../../../protocol/resources/networks.ts";
import { ROOT } from "../../../self-host/build.ts";
import { runAgent } from "../../harness/agent.ts";
import { temporaryDir } from "../../harness/directories.ts";
import { startNetworkApi, type NetworkApiServer } from "../../harness/networks/network-api.ts";
import { PATIENT } from "../../harness/patience.ts";
import { canOpenTerminals, type } from "../../harness/terminal.ts";
import { startTestRelay, type TestRelay } from "../../harness/test-relay.ts";
import { createPeer, type WireGuardPeer } from "../../harness/wireguard/peer.ts";

let relay: TestRelay;
let api: NetworkApiServer;
let network: PrivateNetwork;
let server: WireGuardPeer;
let dir: string;
const org = randomUUID();

beforeAll(async () => {
  relay = await startTestRelay();
  api = await startNetworkApi();
  server = await createPeer({ echo: true });
  network = api.addNetwork("home");
  network.server_public_key = server.publicKey;
  network.server_listen_port = server.port;
  dir = await temporaryDir();
  await writeFile(join(dir, "token"), "token");
  // As --setup leaves it: the agent finds the key by the network's name.
  const keys = join(dir, ".config/underpass/networks/home");
  await mkdir(keys, { recursive: true });
  await writeFile(join(keys, "private.key"), `${server.privateKey}\n`, { mode: 0o600 });
  api.relayAccess = async () => {
    const port = relay.ports[0]!;
    const claims = { sub: network.id, org, port, server_public_key: server.publicKey };
    return {
      ticket: await relay.networkTicket(claims),
      expires_at: new Date(Date.now() + 300_000).toISOString(),
      relay: { id: relay.id, url: relay.url, host: "127.0.0.1" },
      port,
    };
  };
});
afterAll(async () => {
  await server?.close();
  await api?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

/** A device called `laptop` that completes a handshake through the relay. */
async function connectDevice(): Promise<WireGuardPeer> {
  const device = await createPeer();
  api.devices = [];
  api.addDevice("laptop", device.publicKey);
  await device.handshake({ address: "127.0.0.1", port: relay.ports[0]! }, server.publicKey);
  device.send("hello");
  await device.arrival("hello");
  return device;
}
const args = () => ["vpn", "home", "--server", api.url.origin];

test("as JSON: ready, the transport, devices by name, the loss of the relay and its return", async () => {
  await using agent = await runAgent([...args(), "--token-file", "TOKEN", "--json"], {
    token: Buffer.from("token"),
    env: { HOME: dir, XDG_CONFIG_HOME: join(dir, ".config") },
  });
  expect(await agent.event("ready")).toEqual({
    event: "ready",
    networkId: network.id,
    endpoint: `127.0.0.1:${relay.ports[0]}`,
    local: `127.0.0.1:${server.port}`,
  });
  expect(await agent.event("path")).toMatchObject({ transport: "udp", isLocalListening: true });
  await using device = await connectDevice();
  expect(await agent.event("device")).toMatchObject({
    name: "laptop",
    publicKey: device.publicKey,
    endpoint: `127.0.0.1:${device.port}`,
  });
  await relay.stop();
  expect(await agent.event("disconnected")).toMatchObject({ reason: expect.any(String) });
  await relay.start();
  await agent.event("reconnected");
  agent.child.kill("SIGTERM");
  expect(await agent.exit).toBe(0);
});

test("in a log: where it leads, who speaks, and why it ended", async () => {
  await using agent = await runAgent([...args(), "--token-file", "TOKEN"], {
    token: Buffer.from("token"),
    env: { HOME: dir, XDG_CONFIG_HOME: join(dir, ".config") },
  });
  await expect
    .poll(() => agent.stdout, PATIENT)
    .toContain(
      `Serving home (10.88.0.0/24): 127.0.0.1:${relay.ports[0]} -> 127.0.0.1:${server.port}`,
    );
  await expect.poll(() => agent.stdout, PATIENT).toMatch(/^datagrams go over udp, \d+ ms$/m);
  await using device = await connectDevice();
  const speaks = `laptop speaks from 127.0.0.1:${device.port}`;
  await expect.poll(() => agent.stdout, PATIENT).toContain(speaks);
  await relay.api.revoke({ kind: "network", id: network.id, reason: "network_deleted" });
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toContain("network_deleted");
  // No key of the server is in what it printed.
  expect(agent.stdout + agent.stderr).not.toContain(server.privateKey);
});

describe.runIf(canOpenTerminals())("at a terminal", () => {
  test("a live line has the path, the devices and the latest handshake", async () => {
    const command = `${process.execPath} ${join(ROOT, "dist/agent/underpass.js")} ${args().join(" ")} --token-file ${join(dir, "token")}`;
    await using agent = type(command, { cwd: dir, env: { HOME: dir }, atTerminal: true });
    await agent.shows(/State +online/);
    await agent.shows(/Path +udp [\d.]+ ms/);
    await using device = await connectDevice();
    await agent.shows(/udp [\d.]+ ms · \d\.\d % lost · 1 device · laptop handshake \d+ s ago/);
    await agent.shows(/laptop +10\.88\.0\.2 +handshake \d+ s ago/);
    expect(device.handshakes()).toBe(1);
    const { port } = server;
    await server.close();
    await agent.shows(new RegExp(`nothing listens on ${port}`));
    await server.bind(port);
    expect(await agent.interrupt()).toBe(0);
  });
});
