/** How the local TCP server of a tunnel is written. */
import { NO_LOCAL_PORT } from "../../protocol/local-server.ts";

export interface TcpTarget {
  /** A name or an address, IPv6 without brackets. */
  host: string;
  port: number;
  /** The absolute path of a server that listens on a Unix socket. */
  socketPath?: string;
  /** `localhost:5432`: as it is printed. */
  text: string;
}

/** @param socketPath the absolute path of a Unix socket. */
export function createTcpSocketTarget(socketPath: string): TcpTarget {
  return { host: "localhost", port: NO_LOCAL_PORT, text: `unix:${socketPath}`, socketPath };
}

/** Accepts `5432`, `host:5432`, `[::1]:5432`, each also after `tcp://`. @returns null for anything else. */
export function parseTcpTarget(text: string): TcpTarget | null {
  const plain = text.trim().replace(/^tcp:\/\//i, "");
  const withHost = /^\d+$/.test(plain) ? `localhost:${plain}` : plain;
  const match = /^(?:\[([0-9a-f:.]+)\]|([^[\]:/?#@\s]+)):(\d{1,5})$/i.exec(withHost);
  if (!match) return null;
  const [, ipv6, name, portText] = match;
  const port = Number(portText);
  if (port < 1 || port > 65_535) return null;
  return { host: ipv6 ?? name!, port, text: withHost };
}
