/** Where `underpass connect` listens. */

export interface ListenAddress {
  host: string;
  /** undefined: that of the tunnel's local server. 0: any free one. */
  port: number | undefined;
}

const LOOPBACK = "127.0.0.1";

/**
 * Reads `5433`, `127.0.0.1:5433`, `localhost:5433`, `[::1]:5433`; undefined is the tunnel's own port on this
 * machine.
 * @returns null for anything else.
 */
export function parseListenAddress(text: string | undefined): ListenAddress | null {
  if (text === undefined) return { host: LOOPBACK, port: undefined };
  const match = /^(?:(?:\[([0-9a-f:.]+)\]|([^[\]:/?#@\s]+)):)?(\d{1,5})$/i.exec(text.trim());
  if (!match) return null;
  const [, ipv6, name, portText] = match;
  const port = Number(portText);
  return port > 65_535 ? null : { host: ipv6 ?? name ?? LOOPBACK, port };
}

/** `127.0.0.1:5433`, `[::1]:5433` */
export function formatAddress(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
