/**
 * A private network of real WireGuard (wireguard-go) between network namespaces: `srv` has the server and the
 * agent, `rel` the relay, `cli` a client. The API runs on the bridge between them.
 */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { mintToken, startApi, waitUntil, type Person, type TestApi } from "../server/api.ts";
import { createNamespaces, type Machine, type Namespaces } from "./namespaces.ts";
import {
  startRelayProcess,
  waitUntilLinked,
  type RelayBehindProxies,
  type RelayProcessOptions,
} from "./relay-process.ts";

const SECRET = "relay-secret-of-tests-and-of-nothing-else";
const ECHO = join(dirname(fileURLToPath(import.meta.url)), "echo.ts");
const ECHO_PORT = 7_777;

export interface RealNetwork extends AsyncDisposable {
  namespaces: Namespaces;
  client: Machine;
  server: Machine;
  api: TestApi;
  /** The API's URL for the machines. */
  url: string;
  owner: Person;
  token: Buffer;
  relay: RelayBehindProxies;
  /** A directory that is removed with the network. */
  dir: string;
  startRelay(options: Partial<RelayProcessOptions>): Promise<RelayBehindProxies>;
}

/** @param machines names of additional machines. @param relayOptions for the relay that is started. */
export async function startRealNetwork(
  machines: string[] = [],
  relayOptions: (namespaces: Namespaces) => Partial<RelayProcessOptions> = () => ({}),
): Promise<RealNetwork> {
  const dir = mkdtempSync(join(tmpdir(), "underpass-namespaces-"));
  const namespaces = createNamespaces(["cli", "rel", "srv", ...machines]);
  const closing: (() => unknown)[] = [
    () => rmSync(dir, { recursive: true, force: true }),
    () => namespaces[Symbol.asyncDispose](),
  ];
  const close = async () => {
    for (const step of closing.reverse()) await step();
  };
  try {
    const api = await startApi({
      env: {
        HOST: "0.0.0.0",
        API_HOSTS: `localhost,127.0.0.1,${namespaces.address}`,
        LOCAL_RELAY: "off",
        RELAY_SECRET: SECRET,
      },
    });
    closing.push(() => api.stop());
    const url = `http://${namespaces.address}:${api.server.port}`;
    const machine = namespaces.machine("rel");
    const startRelay = async (options: Partial<RelayProcessOptions> = {}) => {
      const id = options.id ?? "main";
      const relay = await startRelayProcess({
        id,
        apiUrl: url,
        secret: SECRET,
        address: machine.address,
        prefix: machine.prefix,
        ...options,
      });
      closing.push(() => relay[Symbol.asyncDispose]());
      await waitUntilLinked(api, relay);
      return relay;
    };
    const relay = await startRelay(relayOptions(namespaces));
    const owner = await api.owner();
    const token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
    return {
      namespaces,
      client: namespaces.machine("cli"),
      server: namespaces.machine("srv"),
      api,
      url,
      owner,
      token,
      relay,
      dir,
      startRelay,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Adds a WireGuard interface to a namespace with wireguard-go. It is removed with the namespace. */
export async function addInterface(
  machine: Machine,
  name: string,
  { address, privateKey, port }: { address: string; privateKey: string; port?: number },
): Promise<void> {
  machine.start("wireguard-go", ["-f", name], { LOG_LEVEL: "error" });
  await waitUntil(() => Promise.resolve(hasInterface(machine, name)));
  const listen = port === undefined ? "" : `listen-port ${port}`;
  // wg reads keys only from files, and a pipe of Node.js is a socket.
  const command = `f=$(mktemp) && cat > $f && wg set ${name} ${listen} private-key $f; rm $f`;
  machine.run("sh", ["-c", command], `${privateKey}\n`);
  machine.run("ip", ["addr", "add", address, "dev", name]);
  machine.run("ip", ["link", "set", "mtu", "1420", "up", "dev", name]);
}

function hasInterface(machine: Machine, name: string): boolean {
  try {
    machine.run("wg", ["show", name, "listen-port"]);
    return true;
  } catch {
    return false;
  }
}

/** Starts an echo server at an address of a machine's WireGuard interface. */
export async function startEcho(machine: Machine, address: string): Promise<void> {
  const child = machine.start(process.execPath, [ECHO, "serve", address, String(ECHO_PORT)]);
  await new Promise((resolve) => child.stdout?.once("data", resolve));
}

export interface Pings {
  child: ChildProcess;
  /** Round trips in milliseconds by sequence number. */
  roundTrips: Map<number, number>;
  stop(): void;
}

/** Sends a ping in each interval until it is stopped. */
export function startPings(machine: Machine, address: string, intervalMs: number): Pings {
  const args = [ECHO, "ask", address, String(ECHO_PORT), String(intervalMs)];
  const child = machine.start(process.execPath, args);
  const roundTrips = new Map<number, number>();
  createInterface({ input: child.stdout! }).on("line", (line) => {
    const { sequence, ms } = JSON.parse(line) as { sequence: number; ms: number };
    roundTrips.set(sequence, ms);
  });
  return { child, roundTrips, stop: () => void child.kill("SIGKILL") };
}

/** Writes a configuration that only root can read, as wg-quick requires. @returns its path. */
export function writeConfig(dir: string, name: string, config: string): string {
  const path = join(dir, `${name}.conf`);
  writeFileSync(path, config, { mode: 0o600 });
  return path;
}
