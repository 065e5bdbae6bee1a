/** The lines of tunnels on the screen: one or two for each of several, and which of them the keys are for. */
import type { TunnelGates } from "../gates/tunnel-gates.ts";
import { formatCount } from "../output/format/format-count.ts";
import { formatConnectCommand } from "../tcp/connect-command.ts";
import { getLineText, type Line, type Span, type Style } from "./line.ts";
import { breakText, cutText, fitText, getWidth } from "./text.ts";

export interface TunnelView {
  name: string;
  /** The local server, as it is printed. */
  local: string;
  /** Undefined until the server has given the tunnel one, and for a private tunnel. */
  url: string | undefined;
  /** The name of a private TCP tunnel, which has no URL that anyone could connect to: `underpass connect` takes the name. */
  privateName?: string;
  connection: "connecting" | "online" | "reconnecting" | "stopped" | "rejected" | "closing";
  latencyMs: number | undefined;
  /** The mean difference of two heartbeats in turn. */
  jitterMs: number | undefined;
  reconnects: number;
  /** Undefined until the server has reported them. */
  gates: TunnelGates | undefined;
  /** Visits that the service refused since the start; 0 for a TCP tunnel, whose visitors the relay refuses. */
  refused: number;
  /** How many agents of the pool serve the tunnel. Undefined for an agent that serves alone. */
  agents?: number;
  /** How many connections a TCP tunnel has had since the start, and how many of them are open. */
  connections?: { count: number; open: number };
  /** RFC 3339; undefined when it never expires, or the server does not report it. */
  expiresAt: string | undefined;
  /** Warnings that hold now. */
  warnings: string[];
}

const NAME_MAX_WIDTH = 16;
const CONNECTION_STYLES: Record<TunnelView["connection"], Style> = {
  connecting: "yellow",
  online: "green",
  reconnecting: "yellow",
  stopped: "yellow",
  rejected: "red",
  closing: "dim",
};

/**
 * @param selected the tunnel that the keys are for; its lines are always among the returned ones.
 * @returns at most `height` lines, or those of one tunnel.
 */
export function formatTunnels(
  tunnels: readonly TunnelView[],
  selected: TunnelView | undefined,
  width: number,
  height: number,
): Line[] {
  const nameWidth = getNameWidth(tunnels.map(({ name }) => name));
  const stateWidth = Math.max(...tunnels.map((tunnel) => getWidth(getState(tunnel))));
  const wide = tunnels.map((tunnel) => [
    [...formatName(tunnel, tunnel === selected, nameWidth, stateWidth), ...formatAddress(tunnel)],
  ]);
  const fits = wide.every(([line = []]) => getWidth(getLineText(line)) <= width);
  const blocks = fits
    ? wide
    : tunnels.map((tunnel) => formatNarrow(tunnel, tunnel === selected, width));
  return cutBlocks(blocks, selected ? tunnels.indexOf(selected) : 0, height);
}

/** `online, 12 ms ± 3 ms, 2 reconnects, 3 agents` */
export function formatConnection(tunnel: TunnelView): Span[] {
  const { connection } = tunnel;
  const state = getState(tunnel);
  return [
    { text: connection, style: CONNECTION_STYLES[connection] },
    { text: state.slice(connection.length) },
  ];
}

/** The URL; `db (private)` for a private tunnel. */
export function getAddress({ url, privateName }: TunnelView): string {
  return privateName === undefined ? (url ?? "…") : `${privateName} (private)`;
}

/** @returns the command that connects to a private tunnel; undefined for others. */
export function getConnectCommand({ privateName }: TunnelView): string | undefined {
  return privateName === undefined ? undefined : formatConnectCommand(privateName);
}

/** `17, 2 open` */
export function formatCounts({ count, open }: { count: number; open: number }): string {
  return `${count}${open === 0 ? "" : `, ${open} open`}`;
}

/** The width of a column with these names. */
export function getNameWidth(names: Iterable<string>): number {
  return Math.min(NAME_MAX_WIDTH, Math.max(0, ...[...names].map(getWidth)));
}

function getState({ connection, latencyMs, jitterMs, reconnects, agents }: TunnelView): string {
  const jitter = jitterMs === undefined || jitterMs < 1 ? "" : ` ± ${Math.round(jitterMs)} ms`;
  const latency =
    connection === "online" && latencyMs !== undefined
      ? `, ${formatLatency(latencyMs)}${jitter}`
      : "";
  const again = reconnects === 0 ? "" : `, ${formatCount(reconnects, "reconnect")}`;
  const pool =
    connection !== "online" || agents === undefined ? "" : `, ${formatCount(agents, "agent")}`;
  return connection + latency + again + pool;
}

function formatLatency(ms: number): string {
  return ms < 1 ? "<1 ms" : `${Math.round(ms)} ms`;
}

/** `> shop  online, 12 ms  ` */
function formatName(
  tunnel: TunnelView,
  isSelected: boolean,
  nameWidth: number,
  stateWidth: number,
): Span[] {
  const mark = isSelected ? "> " : "  ";
  const name = { text: `${mark}${fitText(tunnel.name, nameWidth)}` };
  const state = formatConnection(tunnel);
  const space = " ".repeat(stateWidth - getWidth(getState(tunnel)) + 2);
  return [
    { ...name, ...(isSelected && { style: "bold" as const }) },
    { text: "  " },
    ...state,
    { text: space },
  ];
}

/** `https://shop.example -> http://localhost:3000` */
function formatAddress(tunnel: TunnelView): Span[] {
  const { url, local, connections } = tunnel;
  const counts = connections === undefined ? "" : `  ${formatConnections(connections)}`;
  return [
    { text: getAddress(tunnel), style: "bold", ...(url !== undefined && { link: url }) },
    { text: ` -> ${local}${counts}` },
  ];
}

function formatConnections(connections: { count: number; open: number }): string {
  const { count, open } = connections;
  return `${formatCount(count, "connection")}${open === 0 ? "" : `, ${open} open`}`;
}

/** The state and the address below one another. The URL is never cut. */
function formatNarrow(tunnel: TunnelView, isSelected: boolean, width: number): Line[] {
  const { name, url, local, connections } = tunnel;
  const nameWidth = Math.min(getWidth(name), NAME_MAX_WIDTH);
  const state = formatName(tunnel, isSelected, nameWidth, getWidth(getState(tunnel)));
  const address = formatAddress(tunnel);
  if (getWidth(getLineText(address)) <= width - 2) return [state, [{ text: "  " }, ...address]];
  const link = url === undefined ? {} : { link: url };
  const room = Math.max(1, width - 2);
  const counts = connections === undefined ? [] : [formatConnections(connections)];
  return [
    state,
    ...breakText(getAddress(tunnel), room).map((text): Line => [
      { text: "  " },
      { text, style: "bold" as const, ...link },
    ]),
    ...breakText(`-> ${local}`, room).map((text): Line => [{ text: `  ${text}` }]),
    ...counts.map((text): Line => [{ text: `  ${cutText(text, room)}` }]),
  ];
}

/** The page of tunnels that has the selected one, and how many are not on it. */
function cutBlocks(blocks: Line[][], selectedAt: number, height: number): Line[] {
  if (blocks.flat().length <= height) return blocks.flat();
  let page: Line[][] = [];
  for (const [at, block] of blocks.entries()) {
    if (page.length > 0 && page.flat().length + block.length > height - 1) {
      if (selectedAt < at) break;
      page = [];
    }
    page.push(block);
  }
  const hidden = blocks.length - page.length;
  return [
    ...page.flat(),
    [{ text: `  and ${formatCount(hidden, "more tunnel")}; Tab shows them`, style: "dim" }],
  ];
}
