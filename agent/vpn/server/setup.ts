/** `underpass vpn <network> --setup`: makes this machine the WireGuard server of a network. */
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { parseCidr } from "../../../shared/cidr.ts";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { readPrivateFile, writePrivateFile } from "../../disk/private-file.ts";
import { SettingsError } from "../../settings-error.ts";
import type { NetworkApi } from "../network-api.ts";
import { NetworkStateDir, type NetworkState, type ServerKeys } from "./network-state-dir.ts";
import { AppliedPeers } from "./applied-peers.ts";
import { checkConfig, fillPrivateKey, readPeers } from "../wireguard/config.ts";
import { INTERFACE_NAME_MAX_CHARS } from "../wireguard/interface-name.ts";
import { findInterface, listInterfaces, run } from "../wireguard/tools.ts";
import { PROGRAM } from "../../program.ts";

interface SetupOptions {
  api: NetworkApi;
  server: URL;
  /** The network's name or id; a new network gets it as its name. */
  network: string;
  cidr: string | undefined;
  listenPort: number | undefined;
  interfaceName: string | undefined;
  directory: string | undefined;
  /** Whether another server's registration may be replaced. */
  canReplaceServer: boolean;
  /** Whether this process can bring an interface up: `wg-quick` requires root. */
  isRoot: boolean;
  signal: AbortSignal;
  /** Receives one line for each step. */
  report: (line: string) => void;
}

export interface SetupResult {
  network: PrivateNetwork;
  directory: NetworkStateDir;
  interfaceName: string;
  /** The path of the configuration file. */
  config: string;
  isUp: boolean;
}

const DEFAULT_LISTEN_PORT = 51_820;
const LISTEN_PORT_TRIES = 100;

/** @throws SettingsError or ToolError, whose message says what to do. */
export async function setUpServer(options: SetupOptions): Promise<SetupResult> {
  const { api, server, signal, report } = options;
  // Before anything is created on the server that this machine could not use.
  await run("wg", ["--version"]);
  const found = await findOrCreate(options);
  const directory = new NetworkStateDir(found.name, options.directory);
  const state = await directory.readState();
  if (state && state.server !== server.origin) {
    const advice = "choose another directory with --dir";
    throw new SettingsError(`${directory.path} belongs to a network of ${state.server}; ${advice}`);
  }
  const interfaceName = options.interfaceName ?? state?.interface ?? toInterfaceName(found.name);
  const keys = await directory.ensureKeys();
  report(`${keys.isNew ? "Generated" : "Using"} the server's keys in ${directory.path}`);
  const network = await register(options, found, keys);
  const written = await writeConfig(api, network, { directory, interfaceName, keys }, signal);
  const { path } = written;
  await directory.writeState({
    server: server.origin,
    networkId: network.id,
    interface: interfaceName,
    configHash: written.hash,
  } satisfies NetworkState);
  report(written.note);
  // Recorded before the interface is up: a peer without a record would never be removed.
  await new AppliedPeers(directory.path).add(written.peers);
  const isUp = await bringUp(interfaceName, path, keys, options);
  return { network, directory, interfaceName, config: path, isUp };
}

async function findOrCreate(options: SetupOptions): Promise<PrivateNetwork> {
  const { api, network: name, cidr, signal, report } = options;
  const found = await api.find(name, signal);
  if (!found) {
    if (cidr === undefined) {
      const command = `${PROGRAM} vpn ${name} --setup --cidr 10.88.0.0/24`;
      throw new SettingsError(
        `there is no private network called ${name}; to create it, run: ${command}`,
      );
    }
    const created = await api.create(name, cidr, signal);
    report(`Created the network ${created.name} (${created.cidr}).`);
    return created;
  }
  if (cidr !== undefined && parseCidr(cidr)?.text !== parseCidr(found.cidr)?.text) {
    throw new SettingsError(
      `the network ${found.name} has the addresses ${found.cidr}, not ${cidr}; leave out --cidr`,
    );
  }
  return found;
}

async function register(
  options: SetupOptions,
  network: PrivateNetwork,
  keys: ServerKeys,
): Promise<PrivateNetwork> {
  const { api, signal, report } = options;
  const { server_public_key: registered, server_listen_port: registeredPort } = network;
  if (registered !== null && registered !== keys.publicKey && !options.canReplaceServer) {
    throw new SettingsError(
      `another server is registered for ${network.name} (public key ${registered}); to replace it, add --replace-server, after which all devices need new configurations`,
    );
  }
  const port = options.listenPort ?? registeredPort ?? (await findFreePort());
  if (registered === keys.publicKey && registeredPort === port) return network;
  const changed = await api.registerServer(network.id, keys.publicKey, port, signal);
  report(`Registered the server's public key ${keys.publicKey} (port ${port}).`);
  return changed;
}

interface WrittenConfig {
  path: string;
  hash: string;
  peers: string[];
  note: string;
}

/**
 * Updates the configuration file on a machine that `--setup` made the server: a removed device must not be added again when
 * the interface restarts.
 * @returns a line about what was done; null on any other machine.
 */
export async function refreshConfig(
  api: NetworkApi,
  network: PrivateNetwork,
  directory: NetworkStateDir,
  signal: AbortSignal,
): Promise<string | null> {
  const [state, keys] = [await directory.readState(), await directory.readKeys()];
  const isServer = state?.networkId === network.id && keys?.publicKey === network.server_public_key;
  if (!state || !keys || !isServer) return null;
  const server = { directory, interfaceName: state.interface, keys };
  const written = await writeConfig(api, network, server, signal);
  await directory.writeState({ ...state, configHash: written.hash });
  return written.note;
}

/** The machine that `--setup` made the network's server. */
interface ServerMachine {
  directory: NetworkStateDir;
  interfaceName: string;
  keys: ServerKeys;
}

/** Writes the API's configuration with the private key in it. A file that was edited by hand is not overwritten. */
async function writeConfig(
  api: NetworkApi,
  network: PrivateNetwork,
  { directory, interfaceName, keys }: ServerMachine,
  signal: AbortSignal,
): Promise<WrittenConfig> {
  const text = await api.getServerConfig(network.id, signal);
  checkConfig(text, "server", network.cidr);
  const config = fillPrivateKey(text, keys.privateKey);
  const peers = readPeers(text);
  const path = directory.file(`${interfaceName}.conf`);
  const current = await readPrivateFile(path);
  const last = (await directory.readState())?.configHash;
  const hash = hashText(config);
  if (current !== null && last !== hashText(current) && hashText(current) !== hash) {
    await writePrivateFile(`${path}.new`, config);
    const note = `${path} was edited by hand and is unchanged; the new configuration is in ${path}.new`;
    // With the old hash the file still counts as edited.
    return { path, hash: last ?? "", peers, note };
  }
  await writePrivateFile(path, config);
  return { path, hash, peers, note: `Wrote ${path} (${peers.length} devices).` };
}

/** @returns whether the interface is up. */
async function bringUp(
  name: string,
  config: string,
  keys: ServerKeys,
  { report, isRoot }: SetupOptions,
): Promise<boolean> {
  if (!isRoot) {
    report(
      "This user has no permission to change network interfaces. To bring the server up, run:",
    );
    report(`  sudo wg-quick up ${config}`);
    report("If it is already up, run:");
    report(`  sudo wg-quick strip ${config} | sudo wg syncconf ${name} /dev/stdin`);
    return false;
  }
  const running = await findInterface(keys.publicKey);
  if (running === null) {
    if ((await listInterfaces()).includes(name)) {
      throw new SettingsError(
        `the interface ${name} exists and has another key; choose another name with --interface`,
      );
    }
    await run("wg-quick", ["up", config]);
    report(`Brought up the interface ${name}.`);
    return true;
  }
  // `wg` needs a file. It holds the private key, as the configuration file beside it does.
  const stripped = `${config}.stripped`;
  try {
    await writePrivateFile(stripped, await run("wg-quick", ["strip", config]));
    await run("wg", ["syncconf", running, stripped]);
  } finally {
    await rm(stripped, { force: true });
  }
  report(`Updated the running interface ${running}.`);
  return true;
}

/** The first unused port, starting at WireGuard's default: a machine may serve several networks. */
async function findFreePort(): Promise<number> {
  for (let port = DEFAULT_LISTEN_PORT; port < DEFAULT_LISTEN_PORT + LISTEN_PORT_TRIES; port += 1) {
    const socket = createSocket("udp4");
    try {
      socket.bind({ port, exclusive: true });
      await once(socket, "listening");
      return port;
    } catch {
      // In use: try the next one.
    } finally {
      socket.close();
    }
  }
  throw new SettingsError(
    "found no free UDP port for the WireGuard server; choose one with --listen-port",
  );
}

export function toInterfaceName(networkName: string): string {
  const name = networkName.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `wg-${name.replaceAll(/^-+/g, "")}`.slice(0, INTERFACE_NAME_MAX_CHARS).replace(/-+$/, "");
}

function hashText(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
