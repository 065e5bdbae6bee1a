/** `underpass vpn <network>`: carries a private network's datagrams to the local WireGuard server. */
import { canShowScreen } from "../screen/terminal.ts";
import { createRetryPrinter } from "../output/connection-events.ts";
import { VpnJson, VpnLines, VpnScreen, type VpnOutput } from "../output/vpn.ts";
import { getOnlyArgument, UsageError } from "../options.ts";
import { findServerAccess } from "../server-access.ts";
import { SettingsError } from "../settings-error.ts";
import { RejectionError } from "../rejection-error.ts";
import { AppliedPeers } from "../vpn/server/applied-peers.ts";
import { NetworkApi } from "../vpn/network-api.ts";
import { readPrivateFile } from "../disk/private-file.ts";
import { NetworkStateDir } from "../vpn/server/network-state-dir.ts";
import { VpnSession } from "../vpn/session.ts";
import { retryWhileUnreachable } from "../vpn/retry-while-unreachable.ts";
import { refreshConfig, setUpServer, type SetupResult } from "../vpn/server/setup.ts";
import { readPrivateKey } from "../vpn/wireguard/config.ts";
import { canChangeInterfaces } from "../vpn/wireguard/tools.ts";
import { watchForStop } from "./watch-for-stop.ts";
import type { Input } from "./command.ts";
import type { VPN } from "./table/vpn.ts";
import { PROGRAM } from "../program.ts";

type Values = Input<typeof VPN.options>["values"];

/** These describe the server that `--setup` registers. */
const SETUP_OPTIONS = ["cidr", "listen-port", "replace-server"] as const;

export async function run({ values, positionals }: Input<typeof VPN.options>): Promise<number> {
  const network = getOnlyArgument(positionals, "the network", `${PROGRAM} vpn office`);
  const ignored = SETUP_OPTIONS.find((name) => values[name]);
  if (!values.setup && ignored !== undefined) throw new UsageError(`--${ignored} needs --setup`);
  const access = await findServerAccess(values);
  return serve({ values, network, server: access.server, api: new NetworkApi(access) });
}

interface ServeOptions {
  values: Values;
  network: string;
  server: URL;
  api: NetworkApi;
}

async function serve(options: ServeOptions): Promise<number> {
  const { values, api } = options;
  if (values.apply && !(await canChangeInterfaces())) {
    throw new SettingsError(
      "--apply needs the permission to change network interfaces; run the command as root, or with CAP_NET_ADMIN",
    );
  }
  const output = createOutput(values);
  const stop = new AbortController();
  const endWatch = watchForStop(() => stop.abort());
  try {
    const { network, directory, interfaceName } = await prepare(options, output, stop.signal);
    const directoryFor = (name: string): NetworkStateDir =>
      directory ?? new NetworkStateDir(name, values.dir);
    const session = new VpnSession({
      api,
      network,
      findPrivateKey: ({ name }) => findPrivateKey(values.config, directoryFor(name)),
      apply: values.apply
        ? {
            interfaceName,
            createAppliedPeers: ({ name }) => new AppliedPeers(directoryFor(name).path),
            refreshConfig: (current, signal) =>
              refreshConfig(api, current, directoryFor(current.name), signal),
          }
        : null,
    });
    output.attach(session);
    const rejection = await runSession(session, stop.signal);
    output.end(rejection);
    return rejection ? 1 : 0;
  } catch (error) {
    if (error instanceof RejectionError) {
      output.end(error);
      return 1;
    }
    if (!stop.signal.aborted) throw error;
    output.end();
    return 0;
  } finally {
    endWatch();
  }
}

interface NetworkSetup {
  /** The network's name or id. */
  network: string;
  directory: NetworkStateDir | undefined;
  interfaceName: string | undefined;
}

async function prepare(
  { values, network, server, api }: ServeOptions,
  output: VpnOutput,
  signal: AbortSignal,
): Promise<NetworkSetup> {
  if (!values.setup) return { network, directory: undefined, interfaceName: values.interface };
  const setUp = (): Promise<SetupResult> =>
    setUpServer({
      api,
      server,
      network,
      cidr: values.cidr,
      listenPort: values["listen-port"],
      interfaceName: values.interface,
      directory: values.dir,
      canReplaceServer: values["replace-server"],
      isRoot: process.getuid?.() === 0,
      signal,
      report: (line) => output.printSetupLine(line),
    });
  const printRetry = createRetryPrinter((level, line) => output.printSetupLine(line, level));
  const result = await retryWhileUnreachable(setUp, printRetry, signal);
  const { directory, interfaceName } = result;
  return { network: result.network.id, directory, interfaceName };
}

/** Resolves when the user stops it, or with the reason why the network can't be served. */
function runSession(session: VpnSession, stop: AbortSignal): Promise<RejectionError | undefined> {
  return new Promise((resolve) => {
    const end = (rejection?: RejectionError): void => {
      session.close();
      resolve(rejection);
    };
    session.agent.on("rejected", end);
    if (stop.aborted) return end();
    stop.addEventListener("abort", () => end(), { once: true });
    session.start();
  });
}

/** The private key in the file of `--config`, or the one that `--setup` generated. */
async function findPrivateKey(
  config: string | undefined,
  directory: NetworkStateDir,
): Promise<string | null> {
  if (config === undefined) return (await directory.readKeys())?.privateKey ?? null;
  const text = await readPrivateFile(config);
  const key = text === null ? null : readPrivateKey(text);
  if (key === null) {
    throw new SettingsError(
      `${config} has no PrivateKey; name the WireGuard server's own configuration with --config`,
    );
  }
  return key;
}

function createOutput({ json, "log-level": level }: Values): VpnOutput {
  if (json) return new VpnJson();
  return level === undefined && canShowScreen() ? new VpnScreen() : new VpnLines(level ?? "info");
}
