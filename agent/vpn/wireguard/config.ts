/** WireGuard configurations (wg(8), wg-quick(8)) as the API writes them. */
import { findCidrError } from "../../../protocol/schemas/networks.ts";
import { isCidrIn } from "../../../shared/cidr.ts";
import { SettingsError } from "../../settings-error.ts";
import { parseKey } from "./keys.ts";
import { PROGRAM } from "../../program.ts";

/** @param cidr the network's address block. */
type ValueCheck = (value: string, cidr: string) => boolean;

const isNumber: ValueCheck = (value) => /^\d{1,5}$/.test(value);
const isKey: ValueCheck = (value) => parseKey(value) !== null;
/** A key of the server's choice would not be secret. */
const isPlaceholder: ValueCheck = (value) => /^<\w+>$/.test(value);
const isHostAndPort: ValueCheck = (value) => /^\S+:\d{1,5}$/.test(value);
const areInNetwork: ValueCheck = (value, cidr) =>
  value.split(",").every((block) => isCidrIn(block, cidr));

/** All that a server's configuration may contain, by section and key. Clients reach it, so it needs no endpoints. */
const SERVER_VALUES: readonly [string, ValueCheck][] = [
  ["interface.privatekey", isPlaceholder],
  ["interface.address", areInNetwork],
  ["interface.listenport", isNumber],
  ["interface.mtu", isNumber],
  ["peer.publickey", isKey],
  ["peer.allowedips", areInNetwork],
];

const VALUES = {
  server: new Map(SERVER_VALUES),
  device: new Map([
    ...SERVER_VALUES,
    ["peer.endpoint", isHostAndPort],
    ["peer.persistentkeepalive", isNumber],
  ]),
};

/**
 * `wg-quick` runs `PostUp` and similar keys as root, changes the machine's DNS servers and routes all addresses that a
 * configuration names. So one from the network may only contain known, safe keys, and addresses of the network.
 * @param cidr the network's address block.
 * @throws SettingsError with the first line that is not allowed.
 */
export function checkConfig(config: string, role: "server" | "device", cidr: string): void {
  const problem = findCidrError(cidr);
  if (problem !== null) {
    throw new SettingsError(
      `the network's address block ${cidr} ${problem}; ask the operator of the server about it`,
    );
  }
  let section = "";
  for (const line of config.split(/\r?\n/)) {
    const text = line.replace(/#.*/, "").trim();
    if (text === "") continue;
    const header = /^\[(interface|peer)\]$/i.exec(text)?.[1];
    if (header !== undefined) {
      section = header.toLowerCase();
      continue;
    }
    const [, name = "", value = ""] = /^(\w+)\s*=\s*(.*)$/.exec(text) ?? [];
    const isAllowed = VALUES[role].get(`${section}.${name.toLowerCase()}`);
    if (isAllowed?.(value, cidr)) continue;
    throw new SettingsError(
      `in the configuration from the server, this line is not allowed: "${text}"; ask the operator of the server about it`,
    );
  }
}

/** Replaces the placeholder for the private key, which the API never has. */
export function fillPrivateKey(config: string, privateKey: string): string {
  const line = /^([ \t]*PrivateKey[ \t]*=[ \t]*)\S.*$/im;
  if (!line.test(config))
    throw new SettingsError(
      `the server's configuration has no line PrivateKey; update the agent, as \`${PROGRAM} doctor\` describes`,
    );
  return config.replace(line, (_, start: string) => `${start}${privateKey}`);
}

/** @returns null when the text has no private key. */
export function readPrivateKey(config: string): string | null {
  const value = /^[ \t]*PrivateKey[ \t]*=[ \t]*(\S+)/im.exec(config)?.[1];
  return value !== undefined && parseKey(value) ? value : null;
}

/** The public keys of all peers. */
export function readPeers(config: string): string[] {
  const found = config.matchAll(/^[ \t]*PublicKey[ \t]*=[ \t]*(\S+)/gim);
  return [...found].map(([, key]) => key!).filter((key) => parseKey(key));
}
