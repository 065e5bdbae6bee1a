/** WireGuard configurations (wg(8), wg-quick(8)) as the API writes them. */
import { SettingsError } from "../../settings.ts";
import { parseKey } from "./keys.ts";

/** All keys that a configuration of the API may contain. */
const ALLOWED: Record<string, readonly string[]> = {
  interface: ["privatekey", "address", "listenport", "mtu", "dns"],
  peer: ["publickey", "allowedips", "endpoint", "persistentkeepalive"],
};

/**
 * `wg-quick` runs `PostUp` and similar keys as root, so a configuration from the network may only contain known, safe keys.
 * @throws SettingsError with the first line that is not allowed.
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
      "the server's configuration has no line PrivateKey; update the agent: npm install -g underpass",
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
