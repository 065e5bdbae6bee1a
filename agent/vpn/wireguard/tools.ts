/** Runs `wg` and `wg-quick` of wireguard-tools on the WireGuard interfaces of this machine. */
import { execFile } from "node:child_process";
import { explainError } from "../../error-message.ts";
import { readFile } from "node:fs/promises";

export class ToolError extends Error {
  override name = "ToolError";
}

const RUN_MAX_MS = 30_000;
const OUTPUT_MAX_BYTES = 8 * 1024 * 1024;
const CAP_NET_ADMIN = 12n;

/** The addresses of an interface's peers, with prefixes, by public key. */
export type AllowedIps = Map<string, string[]>;

/**
 * Runs a program, without a shell.
 * @throws ToolError with the program's own message, or with how to install it.
 */
export function run(
  program: "wg" | "wg-quick",
  args: string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const options = { env, timeout: RUN_MAX_MS, maxBuffer: OUTPUT_MAX_BYTES };
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      if (error.code === "ENOENT") {
        const advice =
          "install wireguard-tools (apt install wireguard, brew install wireguard-tools)";
        return reject(new ToolError(`${program} is not installed; ${advice}`));
      }
      const output = stderr.trim().split("\n").at(-1) || explainError(error);
      reject(new ToolError(`${[program, ...args.slice(0, 2)].join(" ")} failed: ${output}`));
    });
  });
}

/** Whether this process may change network interfaces: root, or CAP_NET_ADMIN on Linux. */
export async function canChangeInterfaces(): Promise<boolean> {
  if (process.getuid?.() === 0) return true;
  if (process.platform !== "linux") return false;
  const status = await readFile("/proc/self/status", "utf8").catch(() => "");
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> CAP_NET_ADMIN) & 1n) === 1n;
}

export async function listInterfaces(): Promise<string[]> {
  return (await run("wg", ["show", "interfaces"])).split(/\s+/).filter((name) => name !== "");
}

/** @returns the interface that has this public key; null when there is none. */
export async function findInterface(publicKey: string): Promise<string | null> {
  for (const name of await listInterfaces()) {
    const key = await run("wg", ["show", name, "public-key"]).catch(() => "");
    if (key.trim() === publicKey) return name;
  }
  return null;
}

// `wg show <interface> dump` would print all of these in one call, but also the private key.

export async function showAllowedIps(name: string): Promise<AllowedIps> {
  const rows = toRows(await run("wg", ["show", name, "allowed-ips"]));
  return new Map(
    rows.map(([key, ips = ""]) => [
      key,
      ips.split(" ").filter((ip) => ip !== "" && ip !== "(none)"),
    ]),
  );
}

/** @returns each peer's `address:port`. */
export async function showEndpoints(name: string): Promise<Map<string, string>> {
  const rows = toRows(await run("wg", ["show", name, "endpoints"]));
  return new Map(rows.map(([key, endpoint = ""]) => [key, endpoint]));
}

/** @returns when each peer's last handshake was, in milliseconds since the epoch. */
export async function showHandshakes(name: string): Promise<Map<string, number>> {
  const rows = toRows(await run("wg", ["show", name, "latest-handshakes"]));
  return new Map(
    rows
      .map(([key, seconds = "0"]) => [key, Number(seconds) * 1_000] as const)
      .filter(([, ms]) => ms > 0),
  );
}

export async function setPeer(name: string, publicKey: string, ips: string[]): Promise<void> {
  await run("wg", ["set", name, "peer", publicKey, "allowed-ips", ips.join(",")]);
}

export async function removePeer(name: string, publicKey: string): Promise<void> {
  await run("wg", ["set", name, "peer", publicKey, "remove"]);
}

function toRows(output: string): [string, string | undefined][] {
  const lines = output.split("\n").filter((line) => line !== "");
  return lines.map((line) => {
    const [key = "", value] = line.split("\t");
    return [key, value];
  });
}
