/** What the screen of HTTP tunnels shows: a pure function of its state. */
import { cutLine, getLineText, type Line, type Span, type Style } from "./line.ts";
import { formatRequests } from "./request-lines.ts";
import type { RequestList } from "./request-list.ts";
import { breakText, cutText, getWidth, wrapText } from "./text.ts";

export interface TunnelView {
  name: string;
  /** The local server, as it is printed. */
  local: string;
  /** Undefined until the server has given the tunnel one. */
  url: string | undefined;
  connection: "connecting" | "online" | "reconnecting" | "stopped";
  latencyMs: number | undefined;
  reconnects: number;
  /** Warnings that hold now. */
  warnings: string[];
}

export interface HttpScreenState {
  server: string;
  tunnels: TunnelView[];
  /** Messages of the agent and the server; Escape removes them. */
  notices: string[];
  /** The address of the local inspector. */
  inspectorUrl: string | undefined;
  requests: RequestList;
  isTypingFilter: boolean;
  /** The result of the latest key, for some seconds. */
  result: string;
  overlay: "keys" | { qrCode: string[] } | null;
  /** False when standard input is not a terminal. */
  hasKeys: boolean;
  nowMs: number;
}

const LABEL_WIDTH = 12;
/** On narrower screens labels have no column of their own. */
const LABELS_MIN_WIDTH = 50;
/** Requests that a low screen has room for, before optional lines are left out. */
const REQUESTS_MIN = 5;
const CONNECTION_STYLES: Record<TunnelView["connection"], Style> = {
  connecting: "yellow",
  online: "green",
  reconnecting: "yellow",
  stopped: "yellow",
};
/** Key, its short name in the footer, and what it does. */
const KEYS = [
  ["q", "quit", "quit, as Ctrl+C does"],
  ["c", "copy URL", "copy the URL"],
  ["/", "filter", "filter requests by method, status or path"],
  ["j k", "select", "select the next or previous request, as the arrow keys do"],
  ["r", "replay", "replay the selected request"],
  ["o", "inspector", "open the inspector in a browser"],
  ["u", "QR code", "show the URL as a QR code"],
  ["?", "keys", "show the keys"],
] as const;

/** @returns at most `height` lines, none of which is wider than `width`. */
export function renderHttpScreen(state: HttpScreenState, width: number, height: number): Line[] {
  const footer = cutLine(formatFooter(state, width), width);
  const room = height - 1;
  const body = state.overlay ? formatOverlay(state, width) : formatBody(state, width, room);
  const lines = body.slice(0, room).map((line) => cutLine(line, width));
  while (lines.length < room) lines.push([]);
  return [...lines, footer];
}

/** @returns the lines that stay in the terminal after the end. */
export function renderLastState(state: HttpScreenState, width: number, height: number): Line[] {
  const lines = formatBody(state, width, height).map((line) => cutLine(line, width));
  return lines.slice(0, lines.findLastIndex((line) => getLineText(line) !== "") + 1);
}

/** @returns how many rows and columns a QR code needs, with the line of the keys. */
export function getQrSize(qrCode: string[]): { width: number; height: number } {
  return { width: Math.max(...qrCode.map(getWidth)), height: qrCode.length + 2 };
}

function formatBody(state: HttpScreenState, width: number, height: number): Line[] {
  const lines = formatHead(state, width);
  const hasRoom = lines.length + REQUESTS_MIN <= height;
  const head = hasRoom ? lines : lines.filter(({ isOptional }) => !isOptional);
  const shown = head.map(({ line }) => line);
  return [...shown, ...formatRequests(state, width, Math.max(0, height - shown.length))];
}

interface HeadLine {
  line: Line;
  /** Left out when the screen is low. */
  isOptional: boolean;
}

function formatHead(state: HttpScreenState, width: number): HeadLine[] {
  const { tunnels, requests, notices, inspectorUrl } = state;
  const required = (lines: Line[]): HeadLine[] =>
    lines.map((line) => ({ line, isOptional: false }));
  const optional = (lines: Line[]): HeadLine[] => lines.map((line) => ({ line, isOptional: true }));
  const [only] = tunnels;
  const addresses =
    tunnels.length === 1
      ? [...formatField("State", formatConnection(only!), width), ...formatForwarding(only!, width)]
      : tunnels.flatMap((tunnel) => formatTunnel(tunnel, width));
  const warnings = tunnels.flatMap((tunnel) =>
    tunnel.warnings.map((text) => (tunnels.length === 1 ? text : `${tunnel.name}: ${text}`)),
  );
  const open = requests.openStreams;
  const counts = `${requests.count}${open === 0 ? "" : `, ${open} open`}`;
  const filter = requests.filter === "" ? "" : `   filter: ${requests.filter}`;
  return [
    ...optional([[{ text: "underpass", style: "bold" }], []]),
    ...required(addresses),
    ...optional(formatField("Server", [{ text: state.server }], width)),
    ...(inspectorUrl === undefined
      ? []
      : required(formatField("Inspector", [{ text: inspectorUrl, link: inspectorUrl }], width))),
    ...required(warnings.flatMap((text) => formatMessage("Warning", text, width))),
    ...required(notices.flatMap((text) => formatMessage("Note", text, width))),
    ...required(
      formatField("Requests", [{ text: counts }, { text: filter, style: "yellow" }], width),
    ),
    ...optional([[]]),
  ];
}

/** `online, 12 ms, 2 reconnects` */
function formatConnection({ connection, latencyMs, reconnects }: TunnelView): Span[] {
  const latency =
    connection === "online" && latencyMs !== undefined ? `, ${formatLatency(latencyMs)}` : "";
  const again =
    reconnects === 0 ? "" : `, ${reconnects} ${reconnects === 1 ? "reconnect" : "reconnects"}`;
  return [{ text: connection, style: CONNECTION_STYLES[connection] }, { text: latency + again }];
}

function formatLatency(ms: number): string {
  return ms < 1 ? "under 1 ms" : `${Math.round(ms)} ms`;
}

/** The URL is never cut, because it is what a person came for. */
function formatForwarding({ url = "…", local }: TunnelView, width: number): Line[] {
  const link = url === "…" ? {} : { link: url };
  const asSpan = (text: string): Span => ({ text, style: "bold", ...link });
  const line = [asSpan(url), { text: ` -> ${local}` }];
  const room = width - (width < LABELS_MIN_WIDTH ? 0 : LABEL_WIDTH);
  if (getWidth(getLineText(line)) <= room) return formatField("Forwarding", line, width);
  const [first = "", ...rest] = breakText(url, room);
  return [
    ...formatField("Forwarding", [asSpan(first)], width),
    ...rest.flatMap((part) => formatField("", [asSpan(part)], width)),
    ...breakText(`-> ${local}`, room).flatMap((part) => formatField("", [{ text: part }], width)),
  ];
}

/** One of several tunnels: `shop  online, 12 ms  https://shop.example -> localhost:3000` */
function formatTunnel(tunnel: TunnelView, width: number): Line[] {
  const { name, url = "…", local } = tunnel;
  const link = url === "…" ? {} : { link: url };
  const state: Span[] = [{ text: `${name}  ` }, ...formatConnection(tunnel)];
  const address: Span[] = [{ text: url, style: "bold", ...link }, { text: ` -> ${local}` }];
  const line = [...state, { text: "  " }, ...address];
  if (getWidth(getLineText(line)) <= width) return [line];
  return [
    state,
    ...breakText(url, width).map((text): Line => [{ text, style: "bold", ...link }]),
    ...breakText(`-> ${local}`, width).map((text): Line => [{ text }]),
  ];
}

function formatField(label: string, spans: Span[], width: number): Line[] {
  if (width < LABELS_MIN_WIDTH) return [spans];
  return [[{ text: label.padEnd(LABEL_WIDTH) }, ...spans]];
}

/** A message is wrapped and never cut. */
function formatMessage(label: string, text: string, width: number): Line[] {
  const room = width - (width < LABELS_MIN_WIDTH ? 0 : LABEL_WIDTH);
  return wrapText(text, room).flatMap((part, at) =>
    formatField(at === 0 ? label : "", [{ text: part, style: "yellow" }], width),
  );
}

function formatOverlay({ overlay }: HttpScreenState, width: number): Line[] {
  if (overlay === "keys") {
    return KEYS.flatMap(([key, , action]) => {
      const [first = "", ...rest] = wrapText(action, Math.max(1, width - 6));
      return [
        [{ text: key.padEnd(6), style: "bold" as const }, { text: first }],
        ...rest.map((text): Line => [{ text: " ".repeat(6) + text }]),
      ];
    });
  }
  return (overlay?.qrCode ?? []).map((text): Line => [{ text }]);
}

function formatFooter(state: HttpScreenState, width: number): Line {
  const { isTypingFilter, requests, result, overlay, hasKeys } = state;
  if (isTypingFilter) {
    const help = "   Enter keeps it, Esc clears it";
    const typed = `filter: ${requests.filter}_`;
    return [
      { text: typed, style: "bold" },
      { text: help, style: "dim" },
    ];
  }
  if (result !== "") return [{ text: cutText(result, width), style: "bold" }];
  if (!hasKeys) return [{ text: "Ctrl+C quits", style: "dim" }];
  if (overlay !== null) return [{ text: "any key closes this", style: "dim" }];
  return [{ text: fitKeys(state, width), style: "dim" }];
}

/** As many keys as fit; the last ones, which show all others, always. */
function fitKeys({ inspectorUrl }: HttpScreenState, width: number): string {
  const usable = KEYS.filter(([key]) => key !== "o" || inspectorUrl !== undefined);
  const names = usable.map(([key, name]) => `${key} ${name}`);
  const help = names.pop() ?? "";
  while (names.length > 1 && getWidth([...names, help].join("  ")) > width) names.pop();
  return [...names, help].join("  ");
}
