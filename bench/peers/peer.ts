/** Other tunnels, measured in the same run. */
import { existsSync } from "node:fs";
import { get } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BENCH } from "../processes.ts";

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

const READY_MAX_MS = 10_000;

/** Resolves when a program listens on the port. */
export function waitForPort(port: number): Promise<void> {
  return waitUntil(`a server on port ${port}`, () => isListening(port));
}

/** Resolves when the origin answers through the tunnel. */
export function waitForAnswer(port: number, host: string): Promise<void> {
  return waitUntil(`an answer for ${host}`, () => isAnswered(port, host));
}

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

/** `fetch` sends no Host header of its caller. */
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
