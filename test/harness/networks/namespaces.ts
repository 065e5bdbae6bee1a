/**
 * Virtual machines for tests: Linux network namespaces, joined by a bridge on which this process can be reached. Their
 * names contain the process id, so that several test runs can use them at the same time.
 */
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { once } from "node:events";

export interface Namespaces extends AsyncDisposable {
  /** The address of this process on the bridge. */
  address: string;
  machine(name: string): Machine;
  /** Connects two machines directly: a bridge costs the sender some microseconds per datagram. */
  connect(one: string, other: string): [CableEnd, CableEnd];
}

export interface CableEnd {
  address: string;
  link: string;
}

export interface Machine {
  /** Its address on the bridge. */
  address: string;
  /** Its end of the cable. */
  link: string;
  /** The prefix of a command that runs it on this machine. */
  prefix: string[];
  run(command: string, args: string[], input?: string): string;
  start(command: string, args: string[], env?: Record<string, string>): ChildProcess;
}

const STOP_TRIES_MAX = 20;

/** @returns why network namespaces can't be used here, or undefined. */
export function findNamespaceProblem(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "needs root on Linux";
  try {
    closeSync(openSync("/dev/net/tun", "r+"));
  } catch {
    return "/dev/net/tun does not open";
  }
  for (const command of ["ip", "wg", "wg-quick", "wireguard-go"])
    if (spawnSync("sh", ["-c", `command -v ${command}`]).status !== 0)
      return `there is no ${command}`;
  const name = `u${process.pid}probe`;
  if (spawnSync("ip", ["netns", "add", name]).status !== 0) return "ip netns add does not work";
  spawnSync("ip", ["netns", "del", name]);
  return undefined;
}

/** The process id selects a network in 198.18.0.0/15, which is reserved for tests (RFC 2544). */
export function createNamespaces(names: string[]): Namespaces {
  const id = process.pid % 100_000;
  const net = `198.${18 + (id & 1)}.${(id >> 1) & 0xff}`;
  const bridge = `ub${id}`;
  const machines = new Map<string, Machine>();
  const started = new Set<ChildProcess>();
  let cables = 0;

  /** Processes that still run would keep the namespace and its interfaces alive. */
  function killAll(signal: string): boolean {
    const pids = names.flatMap((name) => {
      const { stdout } = spawnSync("ip", ["netns", "pids", `u${id}${name}`], { encoding: "utf8" });
      return (stdout ?? "").split("\n").filter(Boolean);
    });
    for (const pid of pids) spawnSync("kill", [`-${signal}`, pid]);
    return pids.length > 0;
  }

  function remove(): void {
    // On SIGTERM wireguard-go removes its control socket. After a short time the processes are killed.
    for (let tries = 0; killAll(tries < STOP_TRIES_MAX ? "TERM" : "KILL"); tries += 1)
      spawnSync("sleep", ["0.05"]);
    for (const name of names) spawnSync("ip", ["netns", "del", `u${id}${name}`]);
    spawnSync("ip", ["link", "del", bridge]);
  }

  try {
    run("ip", ["link", "add", bridge, "type", "bridge"]);
    run("ip", ["addr", "add", `${net}.1/24`, "dev", bridge]);
    run("ip", ["link", "set", bridge, "up"]);
    names.forEach((name, index) => {
      const namespace = `u${id}${name}`;
      const [near, link] = [`u${id}n${index}`, `u${id}f${index}`];
      const address = `${net}.${index + 2}`;
      const prefix = ["ip", "netns", "exec", namespace];
      run("ip", ["netns", "add", namespace]);
      run("ip", ["link", "add", near, "type", "veth", "peer", "name", link, "netns", namespace]);
      run("ip", ["link", "set", near, "master", bridge, "up"]);
      const machine: Machine = {
        address,
        link,
        prefix,
        run: (command, args, input) => run("ip", [...prefix.slice(1), command, ...args], input),
        start(command, args, env = {}) {
          const child = spawn("ip", [...prefix.slice(1), command, ...args], {
            env: { PATH: process.env.PATH, ...env },
            stdio: ["ignore", "pipe", "pipe"],
          });
          started.add(child);
          child.once("exit", () => started.delete(child));
          return child;
        },
      };
      machine.run("ip", ["link", "set", "lo", "up"]);
      machine.run("ip", ["addr", "add", `${address}/24`, "dev", link]);
      machine.run("ip", ["link", "set", link, "up"]);
      machines.set(name, machine);
    });
  } catch (error) {
    remove();
    throw error;
  }
  // Removes the namespaces also when the test run is interrupted.
  process.once("exit", remove);

  return {
    address: `${net}.1`,
    machine: (name) => machines.get(name)!,
    connect(one, other) {
      cables += 1;
      const ends = [one, other].map((name, index) => {
        // TEST-NET-1 (RFC 5737), visible to these two machines only.
        const address = `192.0.2.${cables * 4 + index + 1}`;
        return { name, address, link: `u${id}c${cables}${"ab"[index]}` };
      }) as [CableEnd & { name: string }, CableEnd & { name: string }];
      const [near, far] = ends;
      const peer = ["peer", "name", far.link, "netns", `u${id}${other}`];
      run("ip", ["link", "add", near.link, "netns", `u${id}${one}`, "type", "veth", ...peer]);
      for (const { name, address, link } of ends) {
        const machine = machines.get(name)!;
        machine.run("ip", ["addr", "add", `${address}/30`, "dev", link]);
        machine.run("ip", ["link", "set", link, "up"]);
      }
      return ends;
    },
    async [Symbol.asyncDispose]() {
      process.off("exit", remove);
      const ends = [...started].map((child) => once(child, "exit"));
      remove();
      await Promise.all(ends);
    },
  };
}

function run(command: string, args: string[], input?: string): string {
  try {
    return execFileSync(command, args, {
      encoding: "utf8",
      input,
      stdio: ["pipe", "pipe", "pipe"],
    });
  } catch (error) {
    const { stderr = "" } = error as { stderr?: string };
    throw new Error(`${command} ${args.join(" ")}: ${stderr}`, { cause: error });
  }
}
