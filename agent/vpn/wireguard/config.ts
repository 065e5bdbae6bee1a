/** WireGuard configuration texts (wg(8), wg-quick(8)) as the API writes them. */
import { SettingsError } from "../../settings.ts";
import { parseKey } from "./keys.ts";

/** Everything that the configurations of the API may say. */
const ALLOWED: Record<string, readonly string[]> = {
  interface: ["privatekey", "address", "listenport", "mtu", "dns"],
  peer: ["publickey", "allowedips", "endpoint", "persistentkeepalive"],
};

/**
 * `wg-quick` runs `PostUp` and its like as root: a configuration that came over the network must not have
 * any line that is not known to be harmless.
 * @throws SettingsError naming the first line that is not.
 */
export function checkConfig(config: string): void {
  let section = "";
  for (const line of config.split(/\r?\n/)) {
    const text = line.replace(/#.*/, "").trim();
    if (text === "") continue;
    const header = /^\[(\w+)\]$/.exec(text)?.[1]?.toLowerCase();
    if (header !== undefined && header in ALLOWED) {
      section = header;
      continue;
    }
    const name = /^(\w+)\s*=/.exec(text)?.[1]?.toLowerCase() ?? "";
    if (ALLOWED[section]?.includes(name)) continue;
    throw new SettingsError(`the server's configuration has a line that is not used: "${text}"`);
  }
}

/** Puts the private key where the API, which never has one, left a placeholder. */
export function fillPrivateKey(config: string, privateKey: string): string {
  const line = /^([ \t]*PrivateKey[ \t]*=[ \t]*)\S.*$/im;
  if (!line.test(config)) throw new SettingsError("the server's configuration has no PrivateKey");
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
