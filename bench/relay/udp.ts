/**
 * WireGuard (wireguard-go at both ends) through the relay and an agent, compared with a direct path between the same
 * ends: throughput, latency, loss, CPU time per datagram, a flood of invalid datagrams, and the memory of many networks.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { PrivateNetwork } from "../../protocol/schemas/networks.ts";
import { mintToken, waitUntil, type Person } from "../../test/harness/server/api.ts";
import {
  findNamespaceProblem,
  type CableEnd,
  type Machine,
  type Namespaces,
} from "../../test/harness/networks/namespaces.ts";
import {
  addInterface,
  startEcho,
  startPings,
  startRealNetwork,
  type RealNetwork,
} from "../../test/harness/networks/real-network.ts";
import { benchRelayMemory } from "./memory.ts";
import { BENCH, getCpuMs, ROOT } from "../processes.ts";
import type { Row } from "../report.ts";
import { ROUNDS, UNLIMITED_MBPS } from "../settings.ts";
import { formatPercent, median, round } from "../statistics.ts";

const [SERVER, CLIENT] = [`bs${process.pid}`, `bc${process.pid}`];
const [SERVER_ADDRESS, CLIENT_ADDRESS] = ["10.88.0.1", "10.88.0.2"];
const LISTEN_PORT = 51_820;
/** The relay has a network namespace of its own, so every port is free. */
const RELAY_PORT = 30_000;
const JUNK_PER_SECOND = 20_000;

/** Ends of the cables between the client, the relay and the server. */
interface Cables {
  relay: { toClient: CableEnd; toServer: CableEnd };
  server: { toClient: CableEnd; toRelay: CableEnd };
}

interface Bench {
  real: RealNetwork;
  cables: Cables;
  seconds: number;
  serverKey: string;
  /** Addresses of the server: through the relay, and direct. */
  endpoints: { relayed: string; direct: string };
  relayPid: number;
  agentPid: number;
}

type Path = keyof Bench["endpoints"];

export async function benchRelayUdp(seconds: number): Promise<Row[]> {
  const reason =
    findNamespaceProblem() ?? findMissingCommand("iperf3") ?? findMissingCommand("nft");
  if (reason !== undefined) {
    console.log(`relay: WireGuard is not measured here (${reason})`);
    return [];
  }
  let cables: Cables | undefined;
  await using real = await startRealNetwork(["jnk"], (namespaces) => {
    cables = layCables(namespaces);
    const port = RELAY_PORT;
    return {
      port,
      env: { RELAY_BIND: "0.0.0.0", RELAY_URL: `ws://${cables.relay.toServer.address}:${port}` },
    };
  });
  const bench = await setUp(real, cables!, seconds);
  return [
    ...(await measureThroughput(bench)),
    await measureLatency(bench),
    await measureFlood(bench),
    await benchRelayMemory(real),
  ];
}

function findMissingCommand(command: string): string | undefined {
  const isThere = spawnSync("sh", ["-c", `command -v ${command}`]).status === 0;
  return isThere ? undefined : `there is no ${command}`;
}

function layCables(namespaces: Namespaces): Cables {
  const [, relayToClient] = namespaces.connect("cli", "rel");
  const [relayToServer, serverToRelay] = namespaces.connect("rel", "srv");
  const [, serverToClient] = namespaces.connect("cli", "srv");
  return {
    relay: { toClient: relayToClient, toServer: relayToServer },
    server: { toClient: serverToClient, toRelay: serverToRelay },
  };
}

async function setUp(real: RealNetwork, cables: Cables, seconds: number): Promise<Bench> {
  const { client, server, owner } = real;
  const newKey = (): string => client.run("wg", ["genkey"]).trim();
  const toPublic = (key: string): string => client.run("wg", ["pubkey"], key).trim();
  const keys = { server: newKey(), client: newKey() };
  const serverKey = toPublic(keys.server);
  await addInterface(server, SERVER, {
    address: `${SERVER_ADDRESS}/24`,
    privateKey: keys.server,
    port: LISTEN_PORT,
  });
  await addInterface(client, CLIENT, {
    address: `${CLIENT_ADDRESS}/24`,
    privateKey: keys.client,
  });
  const clientPeer = ["peer", toPublic(keys.client), "allowed-ips", `${CLIENT_ADDRESS}/32`];
  server.run("wg", ["set", SERVER, ...clientPeer]);
  const port = await registerServer(owner, serverKey);
  const agentPid = await startAgent(real, owner);
  const iperf = server.start("iperf3", ["-s", "--forceflush", "-B", SERVER_ADDRESS]);
  await once(iperf.stdout!, "data");
  await startEcho(server, SERVER_ADDRESS);
  return {
    real,
    cables,
    seconds,
    serverKey,
    endpoints: {
      relayed: `${cables.relay.toClient.address}:${port}`,
      direct: `${cables.server.toClient.address}:${LISTEN_PORT}`,
    },
    relayPid: real.relay.pid,
    agentPid,
  };
}

/** @returns the relay's port. */
async function registerServer(owner: Person, publicKey: string): Promise<number> {
  const network = { name: "bench", cidr: "10.88.0.0/24" };
  const { body } = await owner.post<PrivateNetwork>("/private-networks", network);
  const server = { server_public_key: publicKey, server_listen_port: LISTEN_PORT };
  const registered = await owner.put<PrivateNetwork>(`/private-networks/${body.id}/server`, server);
  return registered.body.reserved_udp_port ?? 0;
}

async function startAgent({ server, url, dir }: RealNetwork, owner: Person): Promise<number> {
  const tokenFile = join(dir, "token");
  const minted = await mintToken(owner, { bandwidthLimitMbps: UNLIMITED_MBPS });
  writeFileSync(tokenFile, Buffer.from(minted.wireBytes, "base64"), { mode: 0o600 });
  const command = [join(ROOT, "agent/bin/launch.js"), "vpn", "bench", "--json"];
  const agent = server.start(
    process.execPath,
    [...command, "--server", url, "--token-file", tokenFile],
    { HOME: dir },
  );
  agent.stdout?.resume();
  await waitUntil(async () => {
    const { body } = await owner.get<PrivateNetwork[]>("/private-networks");
    return body[0]?.relay.state === "udp";
  });
  return agent.pid ?? 0;
}

/** Makes client and server use this path: the server follows the client's newest address. */
async function switchPath({ real, serverKey, endpoints }: Bench, path: Path): Promise<void> {
  const { client } = real;
  const peer = ["peer", serverKey, "allowed-ips", `${SERVER_ADDRESS}/32`];
  client.run("wg", ["set", CLIENT, ...peer, "endpoint", endpoints[path]]);
  const pings = startPings(client, SERVER_ADDRESS, 20);
  await waitUntil(() => Promise.resolve(pings.roundTrips.size > 10));
  pings.stop();
}

// ── Throughput ──

interface Transfer {
  mbps: number;
  datagrams: number;
  relayMs: number;
  agentMs: number;
}

async function measureThroughput(bench: Bench): Promise<Row[]> {
  const variants = ["direct", "relayed", "relayed, 1 % lost"] as const;
  const transfers = new Map<string, Transfer[]>();
  for (let run = 0; run < ROUNDS; run += 1) {
    for (const variant of variants) {
      await switchPath(bench, variant === "direct" ? "direct" : "relayed");
      const isLossy = variant === "relayed, 1 % lost";
      if (isLossy) addLoss(bench);
      for (const direction of ["up", "down"]) {
        const key = `${variant} ${direction}`;
        transfers.set(key, [...(transfers.get(key) ?? []), await transfer(bench, direction)]);
      }
      if (isLossy) removeLoss(bench.real);
    }
  }
  return ["up", "down"].flatMap((direction) => {
    const mbps = (variant: string) =>
      median(transfers.get(`${variant} ${direction}`)!.map((one) => one.mbps));
    const relayed = transfers.get(`relayed ${direction}`)!;
    const perDatagram = (of: "relayMs" | "agentMs") =>
      round(median(relayed.map((one) => (one[of] * 1000) / one.datagrams)), 1);
    return {
      group: "WireGuard through the relay (iperf3 over wireguard-go, Mbit/s)",
      direction: direction === "up" ? "client to server" : "server to client",
      direct: Math.round(mbps("direct")),
      relayed: Math.round(mbps("relayed")),
      "of direct": formatPercent(mbps("relayed") / mbps("direct"), 1),
      "1 % lost": Math.round(mbps("relayed, 1 % lost")),
      "of relayed": formatPercent(mbps("relayed, 1 % lost") / mbps("relayed"), 1),
      "relay µs a datagram": perDatagram("relayMs"),
      "agent µs a datagram": perDatagram("agentMs"),
      load: round(loadavg()[0] ?? 0, 1),
    };
  });
}

async function transfer(bench: Bench, direction: string): Promise<Transfer> {
  const { real, seconds, relayPid, agentPid } = bench;
  const before = {
    relay: getCpuMs(relayPid),
    agent: getCpuMs(agentPid),
    packets: countPackets(bench),
  };
  const args = ["-c", SERVER_ADDRESS, "-t", String(seconds), "-J"];
  const client = real.client.start("iperf3", direction === "down" ? [...args, "-R"] : args);
  let output = "";
  client.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  await once(client, "close");
  const { end, error } = JSON.parse(output) as {
    end?: { sum_received?: { bits_per_second: number } };
    error?: string;
  };
  if (!end?.sum_received) throw new Error(`iperf3: ${error ?? output}`);
  return {
    mbps: end.sum_received.bits_per_second / 1e6,
    datagrams: countPackets(bench) - before.packets,
    relayMs: getCpuMs(relayPid) - before.relay,
    agentMs: getCpuMs(agentPid) - before.agent,
  };
}

/** Counts packets in both directions between relay and agent, which send each datagram in a packet of its own. */
function countPackets({ real, cables }: Bench): number {
  const { link } = cables.server.toRelay;
  const path = (way: string) => `/sys/class/net/${link}/statistics/${way}_packets`;
  return ["rx", "tx"]
    .map((way) => Number(real.server.run("cat", [path(way)])))
    .reduce((sum, count) => sum + count, 0);
}

/** Drops one percent of the datagrams between relay and agent on arrival, in both directions. */
function addLoss({ real, cables }: Bench): void {
  const { relay, server, namespaces } = real;
  const rules: [Machine, string][] = [
    [
      namespaces.machine("rel"),
      `ip saddr ${cables.server.toRelay.address} udp dport ${relay.port}`,
    ],
    [server, `ip saddr ${cables.relay.toServer.address} udp sport ${relay.port}`],
  ];
  for (const [machine, match] of rules) {
    machine.run("nft", [
      `add table ip loss; add chain ip loss in { type filter hook input priority 0; };`,
      `add rule ip loss in ${match} numgen random mod 100 < 1 drop`,
    ]);
  }
}

function removeLoss({ server, namespaces }: RealNetwork): void {
  for (const machine of [namespaces.machine("rel"), server])
    machine.run("nft", ["delete table ip loss"]);
}

// ── Latency and junk ──

async function measureLatency(bench: Bench): Promise<Row> {
  const latencies: Record<Path, number[]> = { direct: [], relayed: [] };
  for (let run = 0; run < ROUNDS; run += 1) {
    for (const path of ["direct", "relayed"] as const) {
      await switchPath(bench, path);
      const pings = startPings(bench.real.client, SERVER_ADDRESS, 5);
      await sleep(bench.seconds * 1000);
      pings.stop();
      latencies[path].push(median([...pings.roundTrips.values()]));
    }
  }
  const [direct, relayed] = [median(latencies.direct), median(latencies.relayed)];
  return {
    group: "WireGuard through the relay (round trip of 64 bytes, p50 ms)",
    direct: direct.toFixed(2),
    relayed: relayed.toFixed(2),
    added: (relayed - direct).toFixed(2),
    load: round(loadavg()[0] ?? 0, 1),
  };
}

async function measureFlood(bench: Bench): Promise<Row> {
  const { real, relayPid, seconds } = bench;
  await switchPath(bench, "relayed");
  const port = bench.endpoints.relayed.split(":")[1] ?? "";
  const { address } = real.namespaces.machine("rel");
  const pings = startPings(real.client, SERVER_ADDRESS, 2);
  await waitUntil(() => Promise.resolve(pings.roundTrips.size > 50));
  const junk = real.namespaces
    .machine("jnk")
    .start(process.execPath, [
      join(BENCH, "relay/flood.ts"),
      address,
      port,
      String(JUNK_PER_SECOND),
    ]);
  let junkSent = 0;
  createInterface({ input: junk.stdout! }).on("line", (line) => {
    junkSent = (JSON.parse(line) as { sent: number }).sent;
  });
  await waitUntil(() => Promise.resolve(junkSent));
  const junkBefore = junkSent;
  const first = getNewest(pings.roundTrips);
  const [cpuBefore, startedAt] = [getCpuMs(relayPid), performance.now()];
  await sleep(2 * seconds * 1000);
  const last = getNewest(pings.roundTrips);
  const elapsedMs = performance.now() - startedAt;
  const cpuShare = (getCpuMs(relayPid) - cpuBefore) / elapsedMs;
  const junkPerSecond = Math.round(((junkSent - junkBefore) * 1000) / elapsedMs);
  junk.kill("SIGKILL");
  // Responses to the last pings may still arrive.
  await waitUntil(() => Promise.resolve(getNewest(pings.roundTrips) > last + 50));
  pings.stop();
  let answered = 0;
  for (let sequence = first + 1; sequence <= last; sequence += 1)
    if (pings.roundTrips.has(sequence)) answered += 1;
  return {
    group: "a session of 500 datagrams a second during a flood of junk",
    "junk a second": junkPerSecond,
    sent: last - first,
    answered,
    lost: formatPercent(1 - answered / (last - first), 1),
    "relay's share of a core": formatPercent(cpuShare, 1),
    load: round(loadavg()[0] ?? 0, 1),
  };
}

function getNewest(answers: Map<number, number>): number {
  return [...answers.keys()].at(-1) ?? 0;
}
