/**
 * What an agent asks the API for when it opens a tunnel. One row is an option of the command line, and the query parameter of
 * the same name in the connect request (docs/protocols/agent-protocol.md). Those of `TUNNEL_QUERY_OPTIONS` are options of
 * `expose` too.
 */
import { LABEL, LABEL_MESSAGE } from "../../protocol/names.ts";
import { OFF } from "../gates/off.ts";
import { parseCidr } from "../../shared/cidr.ts";
import { UsageError, type OptionSpec, type OptionValues } from "../options.ts";

/** Every tunnel has these options, which are sent with each connection. */
export const TUNNEL_QUERY_OPTIONS = {
  /** The tunnel's name; a random one when left out. */
  subdomain: {
    kind: "text",
    placeholder: "NAME",
    help: "the tunnel's name (default: a random one)",
    parse: parseLabel,
  },
  /** The slug of the project that the tunnel belongs to. */
  project: {
    kind: "text",
    placeholder: "SLUG",
    help: "the project that the tunnel belongs to",
    parse: parseLabel,
  },
  /** Seconds until the tunnel expires, within what the plan allows. */
  ttl: {
    kind: "text",
    placeholder: "TIME",
    help: "the tunnel expires after this time: 90s, 15m, 2h, 1d, or seconds",
    parse: parseDuration,
  },
} as const satisfies Record<string, OptionSpec>;

/** TCP tunnels have these options. They are sent with the first connection only: afterwards the tunnel's own settings count. */
export const TCP_QUERY_OPTIONS = {
  /** The public port; a free one when left out. */
  "remote-port": {
    kind: "text",
    placeholder: "N",
    help: "the public port (default: a free one)",
    parse: parsePort,
  },
  /** Address blocks that visitors may come from; empty leaves the tunnel's allowlist as it is. */
  allow: {
    kind: "list",
    placeholder: "CIDR",
    help: "accept visitors from these addresses only; may be repeated; off removes the current list",
    word: OFF,
    parse: parseAllowed,
  },
} as const satisfies Record<string, OptionSpec>;

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

export type TunnelSettings = Partial<OptionValues<typeof TUNNEL_QUERY_OPTIONS>>;
export type TcpTunnelSettings = Partial<OptionValues<typeof TCP_QUERY_OPTIONS>>;

/** Other tunnel services call this option `--name`. */
export const NAME_OPTION = {
  name: {
    kind: "text",
    placeholder: "NAME",
    help: "the same as --subdomain",
    excludes: ["subdomain"],
    parse: parseLabel,
  },
} as const satisfies Record<string, OptionSpec>;

/** @throws UsageError when the two options have different values. */
export function getSubdomain({
  subdomain,
  name,
}: {
  subdomain?: string | undefined;
  name?: string | undefined;
}): string | undefined {
  if (subdomain !== undefined && name !== undefined && subdomain !== name)
    throw new UsageError("--name is the same as --subdomain; use one of them");
  return subdomain ?? name;
}

/** For `--pool`. @throws UsageError when the server would choose a name, which no other agent knows. */
export function requireSharedName(url: unknown, subdomain: string | undefined): void {
  if (url === undefined && subdomain === undefined)
    throw new UsageError(
      "--pool needs --subdomain or --url, with the same value for all agents of the pool",
    );
}

/** The query parameters of those values that are options in `specs`. */
export function toQuery(
  specs: Record<string, OptionSpec>,
  values: Record<string, string | number | string[] | undefined>,
): Record<string, string> {
  const query: Record<string, string> = {};
  for (const name of Object.keys(specs)) {
    const value = values[name];
    if (value === undefined) continue;
    // A list becomes one value, separated by commas.
    const text = Array.isArray(value) ? value.join(",") : String(value);
    if (text !== "") query[name.replaceAll("-", "_")] = text;
  }
  return query;
}

/** @throws UsageError when the server would refuse it. */
function parseLabel(text: string, option: string): string {
  if (LABEL.test(text)) return text;
  throw new UsageError(`${option} ${LABEL_MESSAGE}, not ${text}`);
}

export function parsePort(text: string, option: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new UsageError(`${option} must be a number from 1 to 65535, not ${text}`);
}

/** @returns seconds. */
function parseDuration(text: string, option: string): number {
  const [, digits, unit = "s"] = /^(\d{1,9})([smhd])?$/.exec(text) ?? [];
  const seconds = Number(digits) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS];
  if (seconds > 0) return seconds;
  throw new UsageError(`${option} must be a time such as 90s, 15m, 2h or 1d, not ${text}`);
}

function parseAllowed(text: string, option: string): string {
  return text === OFF ? OFF : parseAddressBlock(text, option);
}

export function parseAddressBlock(text: string, option: string): string {
  const cidr = parseCidr(text);
  if (cidr) return cidr.text;
  throw new UsageError(`${option} must be an address block such as 203.0.113.0/24, not ${text}`);
}
