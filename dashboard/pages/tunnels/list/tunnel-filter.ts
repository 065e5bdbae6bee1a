/** The filter and the order of the list of tunnels, which is loaded as a whole. Their values are in the URL. */
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { getTunnelState } from "../../../api/tunnels.ts";
import { LOCALE } from "../../../ui/text/locale.ts";

interface TunnelFilter {
  /** A part of the name, the address, a custom domain or the id. */
  text?: string | undefined;
  state?: string | undefined;
  project?: string | undefined;
}

export function matchesFilter(tunnel: Tunnel, { text = "", state, project }: TunnelFilter) {
  if (state !== undefined && getTunnelState(tunnel) !== state) return false;
  if (project !== undefined && tunnel.projectSlug !== project) return false;
  const words = text.toLowerCase().split(/\s+/);
  const searched = [tunnel.name, tunnel.publicUrl, tunnel.id, ...tunnel.customDomains]
    .join("\n")
    .toLowerCase();
  return words.every((word) => searched.includes(word));
}

interface TunnelOrder {
  /** The parameter of the page's URL. Empty: the order of the API. */
  value: string;
  label: string;
  compare?: (one: Tunnel, other: Tunnel) => number;
}

const names = new Intl.Collator(LOCALE, { numeric: true });

export const TUNNEL_ORDERS: readonly TunnelOrder[] = [
  { value: "", label: "Newest first" },
  { value: "name", label: "By name", compare: (one, other) => names.compare(one.name, other.name) },
  {
    value: "requests",
    label: "Most requests first",
    compare: (one, other) => other.totalRequests - one.totalRequests,
  },
  {
    value: "traffic",
    label: "Most traffic first",
    compare: (one, other) => countBytes(other) - countBytes(one),
  },
  {
    value: "seen",
    label: "Last seen first",
    compare: (one, other) => getSeenMs(other) - getSeenMs(one),
  },
];

function countBytes({ bytesIn, bytesOut }: Tunnel): number {
  return bytesIn + bytesOut;
}

/** A connected tunnel is seen now; those that never had an agent are last. */
function getSeenMs({ agentConnected, lastSeenAt }: Tunnel): number {
  if (agentConnected) return Number.MAX_SAFE_INTEGER;
  return lastSeenAt === null ? 0 : Date.parse(lastSeenAt);
}

/** @param value a parameter of the page's URL, which can be any text. */
export function getTunnelOrder(value: string | undefined): TunnelOrder {
  return TUNNEL_ORDERS.find((order) => order.value === value) ?? TUNNEL_ORDERS[0]!;
}

/** Equal ones stay in the order of the API, the newest first. */
export function sortTunnels(tunnels: readonly Tunnel[], { compare }: TunnelOrder) {
  return compare === undefined ? tunnels : tunnels.toSorted(compare);
}
