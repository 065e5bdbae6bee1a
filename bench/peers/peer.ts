/** Other tunnels, measured in the same run. */
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BENCH, spawnQuiet, stopChild } from "../processes.ts";

export interface Peer {
  name: string;
  /** Where its visitors connect, and the host that they ask for. */
  port: number;
  host: string;
  /** Whose processor time is counted. */
  processes: { name: string; pid: number }[];
  stop(): Promise<void>;
}

/** The programs that `bench/peers/build.ts` builds. */
export const PEER_PROGRAMS = join(BENCH, "peers/programs");

/** @returns the path of a built program, or null if it has not been built. */
export function findProgram(name: string): string | null {
  const path = join(PEER_PROGRAMS, name);
  return existsSync(path) ? path : null;
}

/** One end of a tunnel. */
interface PeerProgram {
  name: string;
  path: string;
  /** Before the path of its configuration file. */
  option: string;
  /** In TOML. */
  config: string;
}

interface PeerPrograms extends Pick<Peer, "name" | "port" | "host"> {
  /** Where the server accepts the client. */
  controlPort: number;
  server: PeerProgram;
  client: PeerProgram;
}

/** Starts both ends. Resolves when the origin answers through the tunnel. */
export async function startPrograms(programs: PeerPrograms): Promise<Peer> {
  const { name, port, host, controlPort } = programs;
  const directory = await mkdtemp(join(tmpdir(), "underpass-peer-"));
  const start = async (end: "server" | "client"): Promise<ChildProcess> => {
    const { path, option, config } = programs[end];
    const file = join(directory, `${end}.toml`);
    await writeFile(file, config);
    return spawnQuiet(path, [option, file], { RUST_LOG: "off" });
  };
  const server = await start("server");
  await waitUntil(`a server on port ${controlPort}`, () => isListening(controlPort));
  const client = await start("client");
  await waitUntil(`an answer for ${host}`, () => isAnswered(port, host));
  return {
    name,
    port,
    host,
    processes: [
      { name: programs.server.name, pid: server.pid ?? 0 },
      { name: programs.client.name, pid: client.pid ?? 0 },
    ],
    async stop() {
      await stopChild(client);
      await stopChild(server);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const READY_MAX_MS = 10_000;

async function waitUntil(what: string, isReady: () => Promise<boolean>): Promise<void> {
  const startedAt = performance.now();
  while (!(await isReady())) {
    if (performance.now() - startedAt > READY_MAX_MS) throw new Error(`waited in vain for ${what}`);
    await sleep(50);
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** Not with `fetch`, which lets no caller choose the Host header. */
function isAnswered(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port, headers: { host }, agent: false };
    const request = get(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once("error", () => resolve(false));
  });
}
