/**
 * `underpass vpn <network>`: carries a private network's datagrams to the local WireGuard server, and
 * `underpass vpn <network> add|devices|remove`, its devices.
 */
import { setTimeout as delay } from "node:timers/promises";
import { VpnJson, VpnLines, VpnScreen, type VpnOutput } from "../output/vpn.ts";
import { parseOptions, UsageError, type OptionSpec, type OptionValues } from "../options.ts";
import { findServer, findToken, SettingsError } from "../settings.ts";
import { Unreachable } from "../service-api.ts";
import { backOff, Rejected } from "../tunnel.ts";
import { AppliedPeers } from "../vpn/server/applied-peers.ts";
import { NetworkApi } from "../vpn/network-api.ts";
import { NetworkDirectory, readPrivateFile } from "../vpn/server/network-directory.ts";
import { VpnSession } from "../vpn/session.ts";
import { refreshConfig, setUpServer, type SetupResult } from "../vpn/server/setup.ts";
import { readPrivateKey } from "../vpn/wireguard/config.ts";
import { mayChangeInterfaces } from "../vpn/wireguard/tools.ts";
import { addDevice, listDevices, removeDevice } from "./vpn-devices.ts";

export const vpnOptions = {
  setup: { kind: "flag", help: "make this machine the network's WireGuard server, then serve" },
  apply: { kind: "flag", help: "add and remove WireGuard peers as devices come and go" },
  cidr: {
    kind: "text",
    value: "CIDR",
    help: "with --setup: make the network with these addresses",
  },
  "listen-port": { kind: "text", value: "PORT", help: "with --setup: of the server (51820)" },
  interface: { kind: "text", value: "NAME", help: "the WireGuard interface (wg-<network>)" },
  dir: { kind: "text", value: "DIR", help: "where the server's keys and configuration are" },
  config: {
    kind: "text",
    value: "FILE",
    help: "the server's own configuration: its key tells the devices apart",
  },
  "replace-server": { kind: "flag", help: "with --setup: in place of a server that is registered" },
  out: { kind: "text", value: "FILE", help: "with add: write the configuration to a file" },
  "no-qr": { kind: "flag", help: "with add: no QR code" },
  server: { kind: "text", value: "URL", help: "the Underpass server (default: the last login)" },
  "token-file": { kind: "text", value: "FILE", help: "a file with the capability token's bytes" },
  json: { kind: "flag", help: "one JSON object a line" },
} as const satisfies Record<string, OptionSpec>;

export type VpnValues = OptionValues<typeof vpnOptions>;

/** @returns the exit code: 0 stopped by the user, 1 rejected for good. */
export async function vpn(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, vpnOptions);
  const [network, action, device, ...rest] = positionals;
  if (network === undefined) throw new UsageError("say which network: underpass vpn office");
  if (rest.length > 0) throw new UsageError(`${rest[0]} is one argument too many`);
  const listenPort = parsePort(values["listen-port"]);
  if (action !== undefined && (values.setup || values.apply)) {
    throw new UsageError(`--setup and --apply serve the network; ${action} does not`);
  }
  const isDeviceAction = action === "add" || action === "remove";
  if (isDeviceAction && device === undefined) {
    throw new UsageError(`say which device: underpass vpn ${network} ${action} phone`);
  }
  if (!isDeviceAction && device !== undefined) {
    throw new UsageError(`${device} is one argument too many`);
  }
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const api = new NetworkApi(server, token);
  switch (action) {
    case undefined:
      return serve({ values, network, server, token, api, listenPort });
    case "add":
      return addDevice(api, network, device!, values);
    case "remove":
      return removeDevice(api, network, device!, values);
    case "devices":
      return listDevices(api, network, values);
    default:
      throw new UsageError(`there is no ${action}; there are add, devices and remove`);
  }
}

interface ServeOptions {
  values: VpnValues;
  network: string;
  server: URL;
  token: Buffer;
  api: NetworkApi;
  listenPort: number | undefined;
}

async function serve(options: ServeOptions): Promise<number> {
  const { values, server, token, api } = options;
  if (values.apply && !(await mayChangeInterfaces())) {
    throw new SettingsError(
      "--apply changes a network interface: run it as root, or with CAP_NET_ADMIN",
    );
  }
  const output = newOutput(values.json);
  const stop = new AbortController();
  const stopNow = (): void => stop.abort();
  process.on("SIGINT", stopNow);
  process.on("SIGTERM", stopNow);
  try {
    const { network, directory, interfaceName } = await prepare(options, output, stop.signal);
    const directoryFor = (name: string): NetworkDirectory =>
      directory ?? new NetworkDirectory(name, values.dir);
    const session = new VpnSession({
      server,
      token,
      api,
      network,
      privateKey: ({ name }) => findPrivateKey(values.config, directoryFor(name)),
      apply: values.apply
        ? {
            interfaceName,
            applied: ({ name }) => new AppliedPeers(directoryFor(name).path),
            refreshConfig: (current, signal) =>
              refreshConfig(api, current, directoryFor(current.name), signal),
          }
        : null,
    });
    output.show(session);
    const rejection = await run(session, stop.signal);
    output.end(rejection);
    return rejection ? 1 : 0;
  } catch (error) {
    if (error instanceof Rejected) {
      output.end(error);
      return 1;
    }
    if (!stop.signal.aborted) throw error;
    output.end();
    return 0;
  } finally {
    process.off("SIGINT", stopNow);
    process.off("SIGTERM", stopNow);
  }
}

interface Prepared {
  /** Its name or id. */
  network: string;
  directory: NetworkDirectory | undefined;
  interfaceName: string | undefined;
}

async function prepare(
  { values, network, server, api, listenPort }: ServeOptions,
  output: VpnOutput,
  signal: AbortSignal,
): Promise<Prepared> {
  if (!values.setup) return { network, directory: undefined, interfaceName: values.interface };
  const setUp = (): Promise<SetupResult> =>
    setUpServer({
      api,
      server,
      network,
      cidr: values.cidr,
      listenPort,
      interfaceName: values.interface,
      directory: values.dir,
      replacesServer: values["replace-server"],
      isRoot: process.getuid?.() === 0,
      signal,
      report: (line) => output.setup(line),
    });
  const result = await retryWhileUnreachable(setUp, output, signal);
  const { directory, interfaceName } = result;
  return { network: result.network.id, directory, interfaceName };
}

/** Setting up twice does nothing twice; a machine may start before its network does. */
async function retryWhileUnreachable<Result>(
  attempt: () => Promise<Result>,
  output: VpnOutput,
  signal: AbortSignal,
): Promise<Result> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Unreachable) || signal.aborted) throw error;
      const inMs = backOff(failures);
      output.setup(`no connection: ${error.message}; next try in ${(inMs / 1000).toFixed(1)} s`);
      await delay(inMs, undefined, { signal });
    }
  }
}

/** Resolves when it was stopped, or with the reason why the network can't be served. */
function run(session: VpnSession, stop: AbortSignal): Promise<Rejected | undefined> {
  return new Promise((resolve) => {
    const end = (rejection?: Rejected): void => {
      session.close();
      resolve(rejection);
    };
    session.agent.on("rejected", end);
    if (stop.aborted) return end();
    stop.addEventListener("abort", () => end(), { once: true });
    session.start();
  });
}

/** Of the configuration that was named, or of the keys that --setup made. */
async function findPrivateKey(
  config: string | undefined,
  directory: NetworkDirectory,
): Promise<string | null> {
  if (config === undefined) return (await directory.readKeys())?.privateKey ?? null;
  const text = await readPrivateFile(config);
  const key = text === null ? null : readPrivateKey(text);
  if (key === null) throw new SettingsError(`${config} has no PrivateKey`);
  return key;
}

function newOutput(isJson: boolean): VpnOutput {
  if (isJson) return new VpnJson();
  return process.stdout.isTTY ? new VpnScreen() : new VpnLines();
}

function parsePort(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) {
    throw new UsageError("--listen-port is a number from 1 to 65535");
  }
  return port;
}
