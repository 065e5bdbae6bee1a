/**
 * Private networks of real WireGuard between network namespaces, set up as the documentation describes for an office.
 * Needs root. Without it the tests are skipped, and a line says why.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runAgent, type RunningAgent } from "../../harness/tunnel/agent.ts";
import { findNamespaceProblem } from "../../harness/networks/namespaces.ts";
import {
  startEcho,
  startPings,
  startRealNetwork,
  writeConfig,
  type RealNetwork,
} from "../../harness/networks/real-network.ts";
import { fastTimers } from "../../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { readEchoReply, writeEchoRequest } from "../../harness/wireguard/icmp.ts";
import { createPeer } from "../../harness/wireguard/peer.ts";
import type { DeviceEnrollment, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import type { z } from "zod";

const skipReason = findNamespaceProblem();
if (skipReason !== undefined)
  console.warn(`skipped: WireGuard in network namespaces (${skipReason})`);

const NETWORK = "office";
const SERVER_ADDRESS = "10.88.0.1";
/** Unique per process, because the interfaces of all namespaces share a control directory. */
const [SERVER, CLIENT] = [`us${process.pid}`, `uc${process.pid}`];
/** For what the agent does at intervals: with --apply it looks for new devices every five seconds. */
const env = fastTimers(10);
const PING_INTERVAL_MS = 20;

describe.skipIf(skipReason !== undefined)("real WireGuard", () => {
  let realNetwork: RealNetwork;
  let agent: RunningAgent;
  let clientConfig: string;

  const underpass = (args: string[], prefix: string[]) =>
    runAgent([...args, "--server", realNetwork.url, "--token-file", "TOKEN", "--json"], {
      token: realNetwork.token,
      prefix,
      env,
    });
  const readNetwork = async () =>
    (await realNetwork.owner.get<PrivateNetwork[]>("/private-networks")).body[0];
  const readPeers = () =>
    realNetwork.server.run("wg", ["show", SERVER, "peers"]).trim().split("\n");
  const readLatestHandshakes = () => [
    realNetwork.server.run("wg", ["show", SERVER, "latest-handshakes"]),
    realNetwork.client.run("wg", ["show", CLIENT, "latest-handshakes"]),
  ];

  beforeAll(async () => {
    realNetwork = await startRealNetwork();
    const setup = ["--setup", "--cidr", "10.88.0.0/24", "--interface", SERVER, "--apply"];
    agent = await underpass(["vpn", NETWORK, ...setup], realNetwork.server.prefix);
    await agent.event("ready");
  });
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await realNetwork?.[Symbol.asyncDispose]();
  });

  test("--setup brings the server up, and the relay carries its datagrams over UDP", async () => {
    await expect
      .poll(async () => (await readNetwork())?.relay, WAIT_OPTIONS)
      .toMatchObject({
        state: "udp",
        server_listening: true,
      });
    const key = realNetwork.server.run("wg", ["show", SERVER, "public-key"]).trim();
    expect(key).toBe((await readNetwork())?.server_public_key);
  });

  test("an added device gets a configuration that wg-quick accepts, and reaches the server", async () => {
    await using added = await underpass(
      ["vpn", NETWORK, "add", "laptop"],
      realNetwork.client.prefix,
    );
    expect(await added.exit).toBe(0);
    const { config } = JSON.parse(added.stdout) as { config: string };
    clientConfig = writeConfig(realNetwork.dir, CLIENT, config);
    // WireGuard repeats a handshake without an answer only after five seconds.
    await expect.poll(readPeers, WAIT_OPTIONS).not.toEqual([""]);
    realNetwork.client.run("wg-quick", ["up", clientConfig]);
    await startEcho(realNetwork.server, SERVER_ADDRESS);
    const pings = startPings(realNetwork.client, SERVER_ADDRESS, PING_INTERVAL_MS);
    await expect.poll(() => pings.roundTrips.size, WAIT_OPTIONS).toBeGreaterThan(20);
    pings.stop();
  });

  test("a restart of the relay requires no new handshake", async () => {
    const pings = startPings(realNetwork.client, SERVER_ADDRESS, PING_INTERVAL_MS);
    await expect.poll(() => pings.roundTrips.size, WAIT_OPTIONS).toBeGreaterThan(5);
    const before = readLatestHandshakes();
    await realNetwork.relay.stop("SIGKILL");
    const { size } = pings.roundTrips;
    await realNetwork.relay.start();
    await expect.poll(() => pings.roundTrips.size, WAIT_OPTIONS).toBeGreaterThan(size + 40);
    pings.stop();
    expect(readLatestHandshakes()).toEqual(before);
  });

  test("wg-quick strip and wg setconf accept both configurations of the API without output", async () => {
    const { id = "" } = (await readNetwork()) ?? {};
    const devices = await realNetwork.owner.get<{ id: string }[]>(
      `/private-networks/${id}/devices`,
    );
    const paths = [
      `/private-networks/${id}/server-config`,
      `/private-networks/${id}/devices/${devices.body[0]?.id}/config`,
    ];
    for (const path of paths) {
      const { body } = await realNetwork.owner.get<{ config: string }>(path);
      const config = body.config.replace(
        /<[A-Z_]*PRIVATE_KEY>/,
        realNetwork.client.run("wg", ["genkey"]).trim(),
      );
      const file = writeConfig(realNetwork.dir, `ut${process.pid}`, config);
      const command = `wg-quick strip ${file} > ${file}.stripped && wg setconf ${CLIENT} ${file}.stripped`;
      expect(realNetwork.client.run("sh", ["-c", `{ ${command}; } 2>&1`])).toBe("");
    }
    // Restores the client's configuration.
    realNetwork.client.run("sh", [
      "-c",
      `wg-quick strip ${clientConfig} > ${clientConfig}.stripped`,
    ]);
    realNetwork.client.run("wg", ["setconf", CLIENT, `${clientConfig}.stripped`]);
  });

  test("a peer of the tests completes a handshake, sends pings, changes its port and rekeys", async () => {
    await using peer = await createPeer({ address: realNetwork.namespaces.address });
    const { id = "", public_endpoint: endpoint } = (await readNetwork()) ?? {};
    const enrolled = await realNetwork.owner.post<z.infer<typeof DeviceEnrollment>>(
      `/private-networks/${id}/devices`,
      { name: "test peer", public_key: peer.publicKey },
    );
    const { assigned_ip: own } = enrolled.body.device;
    const [address = "", port = ""] = (endpoint ?? "").split(":");
    const key = (await readNetwork())?.server_public_key ?? "";
    // --apply adds it to the server without further commands.
    await peer.handshake({ address, port: Number(port) }, key);
    const answers = () => peer.received.map(({ payload }) => readEchoReply(payload)?.text);
    const ping = async (text: string) => {
      peer.send(writeEchoRequest(own, SERVER_ADDRESS, 1, text));
      await expect.poll(answers, WAIT_OPTIONS).toContain(text);
    };
    await ping("first");
    await peer.rebind();
    await ping("from another port");
    await peer.handshake({ address, port: Number(port) }, key);
    await ping("in a new session");
  });

  test("--apply removes a removed device from the server", async () => {
    const { id = "" } = (await readNetwork()) ?? {};
    const path = `/private-networks/${id}/devices`;
    const devices = await realNetwork.owner.get<{ id: string; public_key: string }[]>(path);
    const { id: deviceId, public_key: key } = devices.body.at(-1)!;
    expect(readPeers()).toContain(key);
    await realNetwork.owner.delete(`${path}/${deviceId}`);
    await expect.poll(readPeers, WAIT_OPTIONS).not.toContain(key);
  });
});
