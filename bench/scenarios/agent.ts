/** The agent: start, memory while idle, and the time until all agents are back after the server was killed. */
import { spawn, type ChildProcess } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { startServer } from "../../test/harness/server/server.ts";
import { mintToken } from "../api.ts";
import { measureLoad } from "../measured-load.ts";
import { getResidentMiB, ROOT, stopChild } from "../processes.ts";
import type { Row } from "../report.ts";
import type { BenchOptions } from "../settings.ts";
import type { BenchStack } from "../stack.ts";
import { median, percentile, round } from "../statistics.ts";

const COMMAND = join(ROOT, "agent/bin/launch.js");
const STARTS = 15;
const AGENTS = 4;
const TUNNELS_EACH = 25;
const RESTARTS = 3;
/** V8 and the agent return memory some seconds after the start. */
const SETTLE_MS = 15_000;

export async function benchAgent(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  return [
    ...(await measureStart(stack)),
    ...(await measureCpu(stack, seconds)),
    ...(await measureManyTunnels(stack)),
  ];
}

async function measureStart(stack: BenchStack): Promise<Row[]> {
  const [version, help, doctor, empty]: number[][] = [[], [], [], []];
  for (let start = 0; start < STARTS; start += 1) {
    version!.push(await timeProgram([COMMAND, "version"]));
    help!.push(await timeProgram([COMMAND, "--help"]));
    empty!.push(await timeProgram(["-e", "0"]));
  }
  const tokenFile = await writeToken(stack, stack.token);
  for (let run = 0; run < RESTARTS; run += 1) {
    const server = ["--server", stack.server.url, "--token-file", tokenFile];
    doctor!.push(await timeProgram([COMMAND, "doctor", ...server]));
  }
  const [plain, plainMiB] = [median(empty!), await measurePlainNode()];
  const idleMiB = getResidentMiB(stack.agent.pid ?? 0);
  const toRow = (name: string, ms: number): Row => ({
    group: "agent: start in ms, compared with an empty program of Node.js",
    command: name,
    ms: round(ms),
    "empty program": round(plain),
    ratio: round(ms / plain, 2),
  });
  return [
    toRow("version", median(version!)),
    toRow("--help", median(help!)),
    toRow("doctor", median(doctor!)),
    {
      group: "agent: resident memory in MiB, compared with an idle program of Node.js",
      tunnels: 1,
      MiB: round(idleMiB, 1),
      "idle program": round(plainMiB, 1),
      ratio: round(idleMiB / plainMiB, 2),
    },
  ];
}

function timeProgram(args: string[]): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { stdio: "ignore" });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => resolve(performance.now() - startedAt));
  });
}

async function measurePlainNode(): Promise<number> {
  const idle = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e9)"], { stdio: "ignore" });
  await sleep(SETTLE_MS);
  const mib = getResidentMiB(idle.pid ?? 0);
  await stopChild(idle);
  return mib;
}

async function measureCpu(stack: BenchStack, seconds: number): Promise<Row[]> {
  const pids = [stack.agent.pid ?? 0, stack.origin.pid];
  const plan = { port: stack.server.port, host: stack.host, path: "/", connections: 32 };
  const { cpuMicros } = await measureLoad({ ...plan, seconds }, pids);
  const [agent = NaN, origin = NaN] = cpuMicros;
  return [
    {
      group: "agent: CPU of a request in µs, compared with the local server",
      connections: 32,
      agent: round(agent),
      "local server": round(origin),
      ratio: round(agent / origin, 2),
    },
  ];
}

async function measureManyTunnels(stack: BenchStack): Promise<Row[]> {
  const { dataDir, port } = stack.server;
  const token = await mintToken(stack, { tunnelQuota: AGENTS * TUNNELS_EACH + 100 });
  const tokenFile = await writeToken(stack, token);
  const reconnects = new ReconnectTimes();
  const all = { tokenFile, name: "single", count: AGENTS * TUNNELS_EACH };
  const single = await startTunnels(stack, all, reconnects);
  await sleep(SETTLE_MS);
  const mib = getResidentMiB(single.pid ?? 0);
  await stopChild(single, "SIGINT");

  const agents: ChildProcess[] = [];
  for (let agent = 0; agent < AGENTS; agent += 1) {
    const some = { tokenFile, name: `agent-${agent}`, count: TUNNELS_EACH };
    agents.push(await startTunnels(stack, some, reconnects));
  }
  const waits: number[] = [];
  let current = stack.server;
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    reconnects.clear();
    const workerd = await current.getPid("workerd");
    await current.kill();
    process.kill(workerd, "SIGKILL");
    current = await startServer({ dataDir, env: { PORT: String(port) } });
    const listeningAt = performance.now();
    const times = await reconnects.waitFor(AGENTS * TUNNELS_EACH);
    waits.push(...times.map((at) => Math.max(0, at - listeningAt)));
  }
  await Promise.all(agents.map((agent) => stopChild(agent, "SIGINT")));
  await current.stop();
  const getPercentile = (share: number) => round(percentile(waits, share));
  return [
    {
      group: "agent: resident memory in MiB, compared with an idle program of Node.js",
      tunnels: AGENTS * TUNNELS_EACH,
      MiB: round(mib, 1),
    },
    {
      group: "agent: ms from the start of a killed server until the agents are back",
      agents: AGENTS * TUNNELS_EACH,
      restarts: RESTARTS,
      p50: getPercentile(0.5),
      p95: getPercentile(0.95),
      max: round(Math.max(...waits)),
    },
  ];
}

/** When each tunnel came back, on the clock of `performance.now()`. */
class ReconnectTimes {
  #times: number[] = [];
  #waiting: { count: number; resolve: (times: number[]) => void } | undefined;

  clear(): void {
    this.#times = [];
  }

  add(): void {
    this.#times.push(performance.now());
    if (this.#waiting && this.#times.length >= this.#waiting.count) {
      this.#waiting.resolve(this.#times);
    }
  }

  waitFor(count: number): Promise<number[]> {
    if (this.#times.length >= count) return Promise.resolve(this.#times);
    return new Promise((resolve) => (this.#waiting = { count, resolve }));
  }
}

/** One process with many tunnels. Resolves when all of them are open. */
async function startTunnels(
  stack: BenchStack,
  { tokenFile, name, count }: { tokenFile: string; name: string; count: number },
  reconnects: ReconnectTimes,
): Promise<ChildProcess> {
  const tunnels = Array.from(
    { length: count },
    (_, tunnel) => `  ${name}-${tunnel}:\n    local: ${stack.origin.port}\n`,
  );
  const config = join(stack.server.dataDir, `${name}.yml`);
  await writeFile(config, `version: 1\ntunnels:\n${tunnels.join("")}`);
  const server = ["--server", stack.server.url, "--token-file", tokenFile];
  const args = ["start", "--all", "--config", config, "--json", ...server];
  const agent = spawn(process.execPath, [COMMAND, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let ready = 0;
  await new Promise<void>((resolve, reject) => {
    agent.once("exit", (code) => reject(new Error(`the agent exited with ${code}`)));
    createInterface(agent.stdout).on("line", (line) => {
      const { event } = JSON.parse(line) as { event: string };
      if (event === "reconnected") reconnects.add();
      if (event === "ready" && (ready += 1) === count) resolve();
    });
  });
  return agent;
}

async function writeToken({ server }: BenchStack, token: Uint8Array): Promise<string> {
  const path = join(server.dataDir, "bench-agent.token");
  await writeFile(path, token, { mode: 0o600 });
  return path;
}
