/** The output of `underpass vpn` at a terminal, in a log and as JSON, with a real relay and WireGuard peers. */
import { join } from "node:path";
import { EventEmitter } from "node:events";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { VpnLines } from "../../../../agent/output/vpn.ts";
import type { VpnSession } from "../../../../agent/vpn/session.ts";
import { ROOT } from "../../../../self-host/build/build.ts";
import {
  startServedNetwork,
  type ServedNetwork,
} from "../../../harness/networks/served-network.ts";
import { fastClock, speedUp } from "../../../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { canOpenTerminals, typeCommand } from "../../../harness/terminal.ts";

const FAST_CLOCK = fastClock(10);

let served: ServedNetwork;

beforeAll(async () => {
  served = await startServedNetwork(FAST_CLOCK);
});
afterAll(async () => {
  await served?.[Symbol.asyncDispose]();
});

test("as JSON: ready, the transport, devices by name, the loss of the relay and the reconnect", async () => {
  const { relay, network, server } = served;
  network.public_endpoint = `relay.example.com:${relay.ports[0]}`;
  await using agent = await served.vpn("--json");
  expect(await agent.event("ready")).toEqual({
    event: "ready",
    networkId: network.id,
    endpoint: `127.0.0.1:${relay.ports[0]}`,
    local: `127.0.0.1:${server.port}`,
  });
  expect(await agent.event("path")).toMatchObject({ transport: "udp", isLocalListening: true });
  await using device = await served.connectDevice();
  expect(await agent.event("device")).toMatchObject({
    name: "laptop",
    publicKey: device.publicKey,
    endpoint: `127.0.0.1:${device.port}`,
  });
  speedUp(agent.child);
  await relay.stop();
  expect(await agent.event("disconnected")).toMatchObject({ reason: expect.any(String) });
  // The relay has other ports from now on.
  network.public_endpoint = "relay.example.com:50001";
  await relay.start();
  await agent.event("reconnected");
  await expect
    .poll(() => agent.stdout, WAIT_OPTIONS)
    .toContain("devices reach the network at relay.example.com:50001 from now on");
  agent.child.kill("SIGTERM");
  expect(await agent.exit).toBe(0);
});

test("a log says which network is served, which devices connect, and why the agent ended", async () => {
  const { relay, network, server } = served;
  await using agent = await served.vpn();
  await expect
    .poll(() => agent.stdout, WAIT_OPTIONS)
    .toContain(
      `Serving home (10.88.0.0/24): 127.0.0.1:${relay.ports[0]} -> 127.0.0.1:${server.port}`,
    );
  await expect
    .poll(() => agent.stdout, WAIT_OPTIONS)
    .toMatch(/^\S+ sending datagrams over udp, \d+ ms$/m);
  await using device = await served.connectDevice();
  const connected = `laptop connected from 127.0.0.1:${device.port}`;
  await expect.poll(() => agent.stdout, WAIT_OPTIONS).toContain(connected);
  await relay.api.revoke({ kind: "network", id: network.id, reason: "network_deleted" });
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toContain("network_deleted");
  // The server's private key is never printed.
  expect(agent.stdout + agent.stderr).not.toContain(server.privateKey);
});

test("--log-level leaves out lines of events that are less important", () => {
  const agent = Object.assign(new EventEmitter(), { network: { server_listen_port: 51_820 } });
  const session = Object.assign(new EventEmitter(), { agent });
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const lines = new VpnLines("warn");
  lines.printSetupLine("wrote the configuration");
  lines.attach(session as unknown as VpnSession);
  const network = { name: "home", cidr: "10.88.0.0/24" };
  agent.emit("ready", { network, endpoint: "relay:1", local: "127.0.0.1:51820" });
  agent.emit("status", { transport: "udp", latencyMs: 1, isLocalListening: false }, undefined);
  session.emit("device", undefined, "key", "192.0.2.1:1");
  agent.emit("disconnected", "lost");
  agent.emit("reconnected");
  const printed = write.mock.calls.map(([text]) => String(text));
  write.mockRestore();
  const withoutTimes = printed.map((line) => line.replace(/^[\d-]+T[\d:.]+Z /, ""));
  expect(withoutTimes.join("")).toBe(
    "Serving home (10.88.0.0/24): relay:1 -> 127.0.0.1:51820\n" +
      "nothing is listening on port 51820; start the WireGuard server (wg-quick up)\n" +
      "disconnected: lost; reconnecting\n",
  );
});

describe.runIf(canOpenTerminals())("at a terminal", () => {
  test("one line shows the path, the devices and the latest handshake", async () => {
    const { args, home, server } = served;
    const program = `${process.execPath} ${join(ROOT, "agent/bin/launch.js")}`;
    const command = `${program} ${args.join(" ")} --token-file ${join(home, "token")}`;
    const env = { HOME: home, ...FAST_CLOCK };
    await using agent = typeCommand(command, { cwd: home, env, atTerminal: true });
    await agent.waitForOutput(/State +online/);
    await agent.waitForOutput(/Path +udp [\d.]+ ms/);
    speedUp(await agent.getPid());
    await using device = await served.connectDevice();
    await agent.waitForOutput(
      /udp [\d.]+ ms · \d\.\d % lost · 1 device · laptop handshake \d+ (s|min) ago/,
    );
    await agent.waitForOutput(/laptop +10\.88\.0\.2 +handshake \d+ (s|min) ago/);
    expect(device.handshakes()).toBe(1);
    const { port } = server;
    await server.close();
    await agent.waitForOutput(new RegExp(`nothing is listening on port ${port}`));
    await server.bind(port);
    expect(await agent.interrupt()).toBe(0);
  });
});
