/**
 * A flood of SYNs at the public port of a TCP tunnel, from a network namespace that drops the answers.
 * Needs root. Without it the test is skipped, and a line says why.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runAgent, type RunningAgent } from "../../harness/tunnel/agent.ts";
import {
  countHalfOpen,
  readProcessUse,
  readTcpCounter,
} from "../../harness/networks/kernel-tcp.ts";
import { findNamespaceProblem, type Machine } from "../../harness/networks/namespaces.ts";
import { startRealNetwork, type RealNetwork } from "../../harness/networks/real-network.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { startEcho, type LocalServer } from "../../harness/relay/tcp/stack.ts";
import { LISTEN_BACKLOG } from "../../../relay/limits.ts";

const reason =
  findNamespaceProblem() ??
  (spawnSync("nft", ["--version"]).status === 0 ? undefined : "there is no nft");
if (reason !== undefined) console.warn(`skipped: a SYN flood in network namespaces (${reason})`);

const PROGRAMS = join(dirname(fileURLToPath(import.meta.url)), "../../harness/networks");
const VISITS = 50;
const VISIT_INTERVAL_MS = 30;
/** A lost SYN or ACK is sent again after one second, and after two more. */
const ANSWERED_WITHIN_MS = 5_000;
const SYNS_PER_SECOND = 1_500;
const SOURCES = 20;
/** For the tunnel's idle data connections, and a visitor's. */
const DESCRIPTORS_GROWTH_MAX = 16;
const GROWTH_MAX_MIB = 32;
/** Linux compares before it adds, on several CPUs at once. */
const HALF_OPEN_MAX = LISTEN_BACKLOG * 1.1;
const SAMPLE_INTERVAL_MS = 25;

interface Visit {
  ms?: number;
  problem?: string;
}

describe.skipIf(reason !== undefined)("a flood of SYNs that are never completed", () => {
  let real: RealNetwork;
  let server: LocalServer;
  let agent: RunningAgent;
  let port: number;

  /** Gives the flooder its addresses, and drops the relay's answers to it. @returns the addresses. */
  function prepareFlooder(flooder: Machine): string[] {
    const [subnet] = /^\d+\.\d+\.\d+\./.exec(flooder.address)!;
    const sources = Array.from({ length: SOURCES }, (_, at) => `${subnet}${100 + at}`);
    for (const source of sources)
      flooder.run("ip", ["addr", "add", `${source}/24`, "dev", flooder.link]);
    const rules = `table inet flood {
      chain input {
        type filter hook input priority 0;
        tcp flags & (syn | ack) == (syn | ack) drop
      }
    }`;
    flooder.run("nft", ["-f", "-"], rules);
    return sources;
  }

  /** Opens connections from another machine, each of which sends data and waits for the echo. */
  async function makeVisits(intervalMs: number): Promise<Visit[]> {
    const args = [real.namespaces.machine("rel").address, port, VISITS, intervalMs];
    const program = join(PROGRAMS, "tcp-visits.ts");
    const child = real.client.start(process.execPath, [program, ...args.map(String)]);
    const visits: Visit[] = [];
    const lines = createInterface({ input: child.stdout! });
    lines.on("line", (line) => visits.push(JSON.parse(line) as Visit));
    await once(lines, "close");
    return visits;
  }

  beforeAll(async () => {
    real = await startRealNetwork(["bad"]);
    // The defaults of Linux, whatever this machine has.
    const settings = ["net.ipv4.tcp_syncookies=1", "net.core.somaxconn=4096"];
    real.namespaces.machine("rel").run("sysctl", ["-qw", ...settings]);
    server = await startEcho();
    agent = await runAgent(
      ["tcp", String(server.port), "--server", real.url, "--token-file", "TOKEN", "--json"],
      { token: real.token },
    );
    ({ publicPort: port } = (await agent.event("ready")) as { publicPort: number });
  });
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    await real?.[Symbol.asyncDispose]();
  });

  test("does not affect visitors or the relay's process", async () => {
    const { pid } = real.relay;
    const relayAddress = real.namespaces.machine("rel").address;
    // The first visits allocate once; that does not count as growth.
    await makeVisits(0);
    const before = await readProcessUse(pid);
    expect(await countHalfOpen(pid, port)).toBe(0);

    const flooder = real.namespaces.machine("bad");
    const target = [relayAddress, String(port), String(SYNS_PER_SECOND)];
    const program = join(PROGRAMS, "syn-flood.ts");
    flooder.start(process.execPath, [program, ...target, ...prepareFlooder(flooder)]);
    // The kernel's queue is full, so it answers with SYN cookies.
    await expect.poll(() => readTcpCounter(pid, "SyncookiesSent"), WAIT_OPTIONS).toBeGreaterThan(0);
    const cookiesBefore = await readTcpCounter(pid, "SyncookiesSent");

    const samples: { halfOpen: number; descriptors: number; residentMiB: number }[] = [];
    const sample = async () =>
      samples.push({ halfOpen: await countHalfOpen(pid, port), ...(await readProcessUse(pid)) });
    const sampling = setInterval(() => void sample(), SAMPLE_INTERVAL_MS);
    const visits = await makeVisits(VISIT_INTERVAL_MS).finally(() => clearInterval(sampling));
    await sample();

    expect(visits).toHaveLength(VISITS);
    expect(visits.filter(({ problem }) => problem !== undefined)).toEqual([]);
    expect(Math.max(...visits.map(({ ms = Infinity }) => ms))).toBeLessThan(ANSWERED_WITHIN_MS);
    // The flood lasted the whole time.
    expect(await readTcpCounter(pid, "SyncookiesSent")).toBeGreaterThan(cookiesBefore);

    const most = (key: keyof (typeof samples)[number]) =>
      Math.max(...samples.map((each) => each[key]));
    expect(most("halfOpen")).toBeGreaterThan(LISTEN_BACKLOG * 0.75);
    expect(most("halfOpen")).toBeLessThanOrEqual(HALF_OPEN_MAX);
    expect(most("descriptors") - before.descriptors).toBeLessThanOrEqual(DESCRIPTORS_GROWTH_MAX);
    expect(most("residentMiB") - before.residentMiB).toBeLessThan(GROWTH_MAX_MIB);
  });
});
