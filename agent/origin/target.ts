/** The local server that an agent forwards to, and the ways to write it on the command line. */
import type { Dispatcher } from "undici";
import { NO_LOCAL_PORT } from "../../protocol/local-server.ts";

/** Where requests go: to the connections of a local server, or to code in this process. */
export interface LocalDispatcher {
  /** @throws when the request can't be sent; later failures are reported to the handler. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): unknown;
  destroy(): Promise<void>;
}

/** What code in this process is told about its tunnel, and reports to it. */
export interface LocalContext {
  getPublicOrigin: () => string;
  onError: (error: unknown) => void;
}

export interface Target {
  scheme: "http" | "https";
  host: string;
  port: number;
  /** `http://localhost:3000`: as it is printed, and the only address that the agent connects to. */
  origin: string;
  /** For a server that listens on a Unix socket: `origin` is `unix:` with this absolute path. */
  socketPath?: string;
  /** What the user should know about it when the tunnel is open. */
  warning?: string | undefined;
  /** For a target that is code in this process: it has no address, and `origin` is only printed. */
  createDispatcher?: (context: LocalContext) => LocalDispatcher;
}

/** Whether it begins like a port, and has neither the scheme nor the port nor the dots of a host: `3000x`. */
export function isMistypedPort(text: string): boolean {
  return /^\d+(?!\d*$)[^.:/?#]*\.?$/.test(text.trim());
}

/**
 * Accepts `3000`, `host:3000`, `[::1]:3000`, `http://host`, `https://host:8443`.
 * @returns null for anything else, also with a path or query: those are the visitor's.
 */
export function parseTarget(text: string): Target | null {
  const url = isMistypedPort(text) ? null : parseUrl(text.trim());
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) return null;
  if ((url.pathname !== "/" && url.pathname !== "") || url.search || url.hash) return null;
  if (url.username || url.password || url.hostname === "") return null;
  const scheme = url.protocol === "https:" ? "https" : "http";
  const port = url.port === "" ? (scheme === "https" ? 443 : 80) : Number(url.port);
  if (port === 0) return null;
  return { scheme, host: url.hostname, port, origin: url.origin };
}

/** @param socketPath the absolute path of a Unix socket. */
export function createSocketTarget(socketPath: string): Target {
  const port = NO_LOCAL_PORT;
  return { scheme: "http", host: "localhost", port, origin: `unix:${socketPath}`, socketPath };
}

/** @returns the target's address as a URL has it: for a Unix socket, that of a server on this machine. */
export function getWebOrigin({ origin, socketPath }: Target): string {
  return socketPath === undefined ? origin : "http://localhost";
}

/**
 * For an address that `parseTarget` refuses because of its path or query.
 * @returns the address without them; null when it would be refused for another reason too.
 */
export function findOriginWithoutPath(text: string): string | null {
  const url = parseUrl(text.trim().replace(/^\d+(?=[/?#])/, "localhost:$&"));
  // Without a scheme and a port it may be meant as the path of a file.
  if (!url || (url.port === "" && !text.includes("://"))) return null;
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  return parseTarget(url.origin) && url.username === "" ? url.origin : null;
}

/** A target without an address. @param name as it is printed. */
export function createLocalTarget(
  name: string,
  createDispatcher: (context: LocalContext) => LocalDispatcher,
): Target {
  const port = NO_LOCAL_PORT;
  return { scheme: "http", host: "localhost", port, origin: name, createDispatcher };
}

/**
 * @param text the address of a local server that was refused. @param kinds what it may be: `port or host:port`.
 * @returns what is wrong with it, in a sentence: above all, that the number in it is not a port.
 */
export function describeInvalidAddress(text: string, kinds: string): string {
  const [, digits] =
    /^(?:[a-z][a-z0-9+.-]*:\/\/)?(?:(?:\[[^\]]*\]|[^:]*):)?(\d+)$/i.exec(text) ?? [];
  if (digits !== undefined && (Number(digits) < 1 || Number(digits) > 65_535))
    return `the port must be a number from 1 to 65535, not ${digits}`;
  return `${text} is not a ${kinds}${isMistypedPort(text) ? ": a port has digits only" : ""}`;
}

function parseUrl(text: string): URL | null {
  const portOnly = /^\d+$/.test(text);
  const withHost = portOnly ? `http://localhost:${text}` : text;
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(withHost) ? withHost : `http://${withHost}`;
  try {
    return new URL(withScheme);
  } catch {
    return null;
  }
}

/** The default of Node.js. */
const ATTEMPT_MAX_MS = 250;
/**
 * On this machine an address without a server refuses at once, and one with a server may be slow because the machine is
 * busy: Node.js's default would give it up.
 */
const LOCALHOST_ATTEMPT_MAX_MS = 3_500;

/** How long one address may take to connect before the next is tried, in milliseconds. */
export function getAttemptMaxMs({ host }: Pick<Target, "host">): number {
  return host === "localhost" ? LOCALHOST_ATTEMPT_MAX_MS : ATTEMPT_MAX_MS;
}

/**
 * A `lookup` function for the local server's name. `localhost` has both loopback addresses, whatever the machine's resolver
 * says, because many local servers listen on only one of them. The first that answers is used.
 */
export function getLookup(target: Pick<Target, "host">) {
  if (target.host !== "localhost") return undefined;
  const both = [
    { address: "127.0.0.1", family: 4 },
    { address: "::1", family: 6 },
  ];
  return (
    _host: string,
    options: { all?: boolean },
    done: (error: null, address: unknown, family?: number) => void,
  ): void => {
    if (options.all) done(null, both);
    else done(null, "127.0.0.1", 4);
  };
}
