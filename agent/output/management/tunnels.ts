/** The output of `underpass tunnels` for people. */
import type { TunnelAgent } from "../../../protocol/schemas/tunnels/connections.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { findLocalPort } from "../../../protocol/local-server.ts";
import { formatExpiry } from "../format/format-relative-time.ts";
import { formatBytes } from "../format/format-bytes.ts";
import { formatCount } from "../format/format-count.ts";
import { getTerminalWidth, Table, type Column } from "../format/table.ts";
import { PROGRAM } from "../../program.ts";

/**
 * The API calls a stopped tunnel offline, as one whose agent is gone, and one that was started again active, even before an
 * agent is back.
 */
export function getTunnelState({
  status,
  stoppedAt,
  agentConnected,
}: Tunnel): Tunnel["status"] | "stopped" {
  if (status === "offline" && stoppedAt !== null) return "stopped";
  return status === "active" && !agentConnected ? "offline" : status;
}

export const TUNNEL_COLUMNS: readonly Column[] = [
  { header: "NAME", isCutLast: true },
  { header: "URL" },
  { header: "STATE" },
  { header: "AGENT", omissionOrder: 2 },
  { header: "REQUESTS", isNumeric: true, omissionOrder: 4 },
  { header: "PROJECT", omissionOrder: 1 },
  { header: "EXPIRES", omissionOrder: 3 },
];

export function createTunnelTable(): Table {
  return new Table(TUNNEL_COLUMNS, getTerminalWidth());
}

export function formatTunnelRow(tunnel: Tunnel): string[] {
  return [
    tunnel.subdomain,
    formatUrl(tunnel),
    getTunnelState(tunnel),
    tunnel.agentConnected ? "connected" : "-",
    String(tunnel.totalRequests),
    tunnel.projectSlug,
    formatExpiry(tunnel.expiresAt, Date.now()),
  ];
}

/** The URL of a TCP tunnel without a public port leads nowhere. */
export function formatUrl(tunnel: Tunnel): string {
  return isPrivate(tunnel) ? "private" : tunnel.publicUrl;
}

function isPrivate({ protocol, publicPort }: Tunnel): boolean {
  return protocol === "tcp" && publicPort === null;
}

/** One line for each property, and one for each agent. */
export function formatTunnel(tunnel: Tunnel, agents: readonly TunnelAgent[]): string[] {
  const rows: [string, string][] = [
    ["Name", tunnel.subdomain],
    ["URL", formatUrl(tunnel)],
    ["State", formatState(tunnel)],
    ["Agent", tunnel.agentConnected ? "connected" : `not connected${formatLastSeen(tunnel)}`],
    ...agents.map((agent): [string, string] => ["", formatAgent(agent)]),
    ["Local server", `${describeLocalServer(tunnel, agents)} (${tunnel.protocol})`],
    ["Project", tunnel.projectSlug],
    ["Requests", String(tunnel.totalRequests)],
    ["Traffic", `${formatBytes(tunnel.bytesIn)} in, ${formatBytes(tunnel.bytesOut)} out`],
    ["Visitors", listGates(tunnel).join(", ") || "everyone"],
    ["Domains", tunnel.customDomains.join(", ") || "-"],
    ["Created", tunnel.createdAt],
    [
      "Expires",
      tunnel.expiresAt === null
        ? "never"
        : `${tunnel.expiresAt} (${formatExpiry(tunnel.expiresAt, Date.now())})`,
    ],
    ["Id", tunnel.id],
  ];
  const width = Math.max(...rows.map(([label]) => label.length)) + 2;
  return rows.map(([label, value]) => label.padEnd(width) + value);
}

/** `203.0.113.7, 3 in flight, since 2026-11-24T09:00:00.000Z` */
function formatAgent({ remote_ip, in_flight, connected_at, healthy }: TunnelAgent): string {
  const health = healthy ? "" : ", its local server refuses connections";
  return `${remote_ip}, ${in_flight} in flight, since ${connected_at}${health}`;
}

/** The addresses of the connected agents, or else the port that the last one had. */
function describeLocalServer(tunnel: Tunnel, agents: readonly TunnelAgent[]): string {
  const addresses = new Set(agents.flatMap(({ local }) => local ?? []));
  if (addresses.size > 0) return [...addresses].join(", ");
  const port = findLocalPort(tunnel);
  return port === null ? "unknown" : `port ${port}`;
}

function formatState(tunnel: Tunnel): string {
  const state = getTunnelState(tunnel);
  if (state !== "stopped") return state;
  return `stopped since ${tunnel.stoppedAt}; start it with: ${PROGRAM} tunnels start ${tunnel.subdomain}`;
}

function formatLastSeen({ lastSeenAt }: Tunnel): string {
  return lastSeenAt === null ? "" : `, last seen ${lastSeenAt}`;
}

function listGates(tunnel: Tunnel): string[] {
  const { allowedCidrs, authEnabled, edgeAuthEnabled, maintenance, policyActions } = tunnel;
  return [
    maintenance ? "maintenance page" : [],
    isPrivate(tunnel) ? `with a token, through underpass connect ${tunnel.subdomain}` : [],
    allowedCidrs === null ? [] : `from ${allowedCidrs.join(" ")}`,
    authEnabled ? "with a password" : [],
    edgeAuthEnabled ? "who sign in" : [],
    policyActions > 0 ? `traffic policy with ${formatCount(policyActions, "action")}` : [],
  ].flat();
}
