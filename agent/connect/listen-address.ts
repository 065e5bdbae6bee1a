/** Where `underpass connect` listens. */

export interface ListenAddress {
  host: string;
  /** undefined: the same as the port of the tunnel's local server. 0: any free port. */
  port: number | undefined;
}

const LOOPBACK = "127.0.0.1";
/** The tunnel's own port on this machine. */
export const DEFAULT_LISTEN_ADDRESS: ListenAddress = { host: LOOPBACK, port: undefined };

/** Accepts `5433`, `127.0.0.1:5433`, `localhost:5433`, `[::1]:5433`. @returns null for anything else. */
export function parseListenAddress(text: string): ListenAddress | null {
  const match = /^(?:(?:\[([0-9a-f:.]+)\]|([^[\]:/?#@\s]+)):)?(\d{1,5})$/i.exec(text.trim());
  if (!match) return null;
  const [, ipv6, name, portText] = match;
  const port = Number(portText);
  return port > 65_535 ? null : { host: ipv6 ?? name ?? LOOPBACK, port };
}
