/**
 * Private networks of real WireGuard between network namespaces, as the documentation tells an office to set
 * them up. Needs root: elsewhere it is skipped with one line that says why.
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
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { readEchoReply, writeEchoRequest } from "../../harness/wireguard/icmp.ts";
import { createPeer } from "../../harness/wireguard/peer.ts";
import type { DeviceEnrollment, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import type { z } from "zod";

const reason = findNamespaceProblem();
if (reason !== undefined) console.warn(`skipped: WireGuard in network namespaces (${reason})`);

const NETWORK = "office";
const SERVER_ADDRESS = "10.88.0.1";
/** Interfaces of all namespaces share a control directory. */
const [SERVER, CLIENT] = [`us${process.pid}`, `uc${process.pid}`];

describe.skipIf(reason !== undefined)("real WireGuard", () => {
  let real: RealNetwork;
  let agent: RunningAgent;
  let clientConfig: string;

  const underpass = (args: string[], prefix: string[]) =>
    runAgent([...args, "--server", real.url, "--token-file", "TOKEN", "--json"], {
      token: real.token,
      prefix,
    });
  const network = async () => (await real.owner.get<PrivateNetwork[]>("/private-networks")).body[0];
  const latestHandshakes = () => [
    real.server.run("wg", ["show", SERVER, "latest-handshakes"]),
    real.client.run("wg", ["show", CLIENT, "latest-handshakes"]),
  ];

  beforeAll(async () => {
    real = await startRealNetwork();
    const setup = ["--setup", "--cidr", "10.88.0.0/24", "--interface", SERVER, "--apply"];
    agent = await underpass(["vpn", NETWORK, ...setup], real.server.prefix);
    await agent.event("ready");
  });
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await real?.[Symbol.asyncDispose]();
  });

  test("--setup brings the server up, and the relay carries its datagrams over UDP", async () => {
    await expect
      .poll(async () => (await network())?.relay, WAIT_OPTIONS)
      .toMatchObject({
        state: "udp",
        server_listening: true,
      });
    const key = real.server.run("wg", ["show", SERVER, "public-key"]).trim();
    expect(key).toBe((await network())?.server_public_key);
  });

  test("a device that is added gets a configuration that wg-quick takes, and reaches the server", async () => {
    await using added = await underpass(["vpn", NETWORK, "add", "laptop"], real.client.prefix);
    expect(await added.exit).toBe(0);
    const { config } = JSON.parse(added.stdout) as { config: string };
    clientConfig = writeConfig(real.dir, CLIENT, config);
    real.client.run("wg-quick", ["up", clientConfig]);
    await startEcho(real.server, SERVER_ADDRESS);
    const pings = startPings(real.client, SERVER_ADDRESS, 50);
    await expect.poll(() => pings.roundTrips.size, WAIT_OPTIONS).toBeGreaterThan(20);
    pings.stop();
  });

  test("a relay that is restarted costs no handshake", async () => {
    const pings = startPings(real.client, SERVER_ADDRESS, 50);
    await expect.poll(() => pings.roundTrips.size, WAIT_OPTIONS).toBeGreaterThan(5);
    const before = latestHandshakes();
    await real.relay.stop("SIGKILL");
    const { size } = pings.roundTrips;
    await real.relay.start();
    await expect.poll(() => pings.roundTrips.size, WAIT_OPTIONS).toBeGreaterThan(size + 40);
    pings.stop();
    expect(latestHandshakes()).toEqual(before);
  });

  test("both configurations of the API pass wg-quick strip and wg setconf without a word", async () => {
    const { id = "" } = (await network()) ?? {};
    const devices = await real.owner.get<{ id: string }[]>(`/private-networks/${id}/devices`);
    const paths = [
      `/private-networks/${id}/server-config`,
      `/private-networks/${id}/devices/${devices.body[0]?.id}/config`,
    ];
    for (const path of paths) {
      const { body } = await real.owner.get<{ config: string }>(path);
      const config = body.config.replace(
        /<[A-Z_]*PRIVATE_KEY>/,
        real.client.run("wg", ["genkey"]).trim(),
      );
      const file = writeConfig(real.dir, `ut${process.pid}`, config);
      const command = `wg-quick strip ${file} > ${file}.stripped && wg setconf ${CLIENT} ${file}.stripped`;
      expect(real.client.run("sh", ["-c", `{ ${command}; } 2>&1`])).toBe("");
    }
    // As it was.
    real.client.run("sh", ["-c", `wg-quick strip ${clientConfig} > ${clientConfig}.stripped`]);
    real.client.run("wg", ["setconf", CLIENT, `${clientConfig}.stripped`]);
  });

  test("a device of our own making completes a handshake with it, is pinged, roams and rekeys", async () => {
    await using peer = await createPeer({ address: real.namespaces.address });
    const { id = "", public_endpoint: endpoint } = (await network()) ?? {};
    const enrolled = await real.owner.post<z.infer<typeof DeviceEnrollment>>(
      `/private-networks/${id}/devices`,
      { name: "test peer", public_key: peer.publicKey },
    );
    const { assigned_ip: own } = enrolled.body.device;
    const [address = "", port = ""] = (endpoint ?? "").split(":");
    const key = (await network())?.server_public_key ?? "";
    // --apply lets it in by itself.
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

  test("a device that is removed is taken out of the server by --apply", async () => {
    const peers = () => real.server.run("wg", ["show", SERVER, "peers"]).trim().split("\n");
    const { id = "" } = (await network()) ?? {};
    const path = `/private-networks/${id}/devices`;
    const devices = await real.owner.get<{ id: string; public_key: string }[]>(path);
    const { id: deviceId, public_key: key } = devices.body.at(-1)!;
    expect(peers()).toContain(key);
    await real.owner.delete(`${path}/${deviceId}`);
    await expect.poll(peers, WAIT_OPTIONS).not.toContain(key);
  });
});
