/** Renders the screen of `underpass http`, `tcp` and `start`: a pure function of its state. */
import { describeGates, describeUnchangedGates } from "../gates/tunnel-gates.ts";
import { formatCount } from "../output/format/format-count.ts";
import { formatComingExpiry } from "../output/format/format-relative-time.ts";
import { formatStopping } from "../output/output.ts";
import { cutLine, getLineText, type Line, type Span, type Style } from "./line.ts";
import { formatRequests } from "./request-lines.ts";
import type { RequestList } from "./request-list.ts";
import { breakText, cutStart, cutText, getWidth, wrapText } from "./text.ts";
import {
  formatConnection,
  formatCounts,
  formatTunnels,
  getAddress,
  getConnectCommand,
  type TunnelView,
} from "./tunnel-lines.ts";

export interface ScreenState {
  server: string;
  /** Undefined until the server has reported it. */
  account: string | undefined;
  /** Says that the server has a newer agent than this one, and how to install it. */
  update: string | undefined;
  tunnels: TunnelView[];
  /** The tunnel that the keys are for. */
  selectedTunnel: TunnelView | undefined;
  /** Why a changed configuration is not used; empty when the file is valid. */
  fileProblems: string[];
  /** Messages of the agent and the server; Escape removes them. */
  notices: string[];
  /** The address of the local inspector. */
  inspectorUrl: string | undefined;
  requests: RequestList;
  /** Since the user stopped the command: how many requests it still waits for. */
  countOpenAtStop: (() => number) | undefined;
  isTypingFilter: boolean;
  /** The result of the latest key, for some seconds. */
  result: string;
  overlay: "keys" | { qrCode: string[] } | null;
  /** False when standard input is not a terminal. */
  hasKeys: boolean;
  nowMs: number;
}

const LABEL_WIDTH = 12;
/** The column of the keys in their list. */
const KEY_WIDTH = 6;
/** On narrower screens labels have no column of their own: the value follows after a space. */
const LABELS_MIN_WIDTH = 50;
/** Requests that a low screen has room for, before optional lines are left out. */
const REQUESTS_MIN = 5;
/** How many tunnels with gates are named. */
const GATED_TUNNELS_SHOWN = 3;
const EXPIRING_TUNNELS_SHOWN = 3;
const PRIVATE_TUNNELS_SHOWN = 3;
/** How many problems of a file are shown. */
const FILE_PROBLEMS_SHOWN = 3;
/** Key, its short name in the footer, and what it does. */
const KEYS = [
  ["q", "quit", "quit, as Ctrl+C does"],
  ["c", "copy URL", "copy the URL, or the command that connects to a private tunnel"],
  ["Tab", "tunnel", "choose the next tunnel for c and u, as ← and → do"],
  [
    "/",
    "filter",
    "filter requests, as underpass logs --filter does: status:5xx, path:/api, or a text",
  ],
  [
    "j k",
    "select",
    "select the next or previous request, as the arrow keys do, and show all of its path and problem",
  ],
  ["r", "replay", "replay the selected request"],
  ["o", "inspector", "open the local inspector, or else the dashboard, in a browser"],
  ["u", "QR code", "show the URL as a QR code"],
  ["?", "keys", "show the keys"],
] as const;

/** @returns at most `height` lines, none of which is wider than `width`. */
export function renderScreen(state: ScreenState, width: number, height: number): Line[] {
  const footer = cutLine(formatFooter(state, width), width);
  const room = height - 1;
  const body = state.overlay ? formatOverlay(state, width) : formatBody(state, width, room);
  const lines = body.slice(0, room).map((line) => cutLine(line, width));
  while (lines.length < room) lines.push([]);
  return [...lines, footer];
}

/** @returns the lines that stay in the terminal after the end. */
export function renderLastState(state: ScreenState, width: number, height: number): Line[] {
  const lines = formatBody(state, width, height).map((line) => cutLine(line, width));
  return lines.slice(0, lines.findLastIndex((line) => getLineText(line) !== "") + 1);
}

/** @returns how many rows and columns a QR code needs, with the line of the keys. */
export function getQrSize(qrCode: string[]): { width: number; height: number } {
  return { width: Math.max(...qrCode.map(getWidth)), height: qrCode.length + 2 };
}

function formatBody(state: ScreenState, width: number, height: number): Line[] {
  const lines = formatHead(state, width, height);
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

function required(lines: Line[]): HeadLine[] {
  return lines.map((line) => ({ line, isOptional: false }));
}

function optional(lines: Line[]): HeadLine[] {
  return lines.map((line) => ({ line, isOptional: true }));
}

function formatHead(state: ScreenState, width: number, height: number): HeadLine[] {
  const { tunnels, requests, notices, inspectorUrl } = state;
  const only = tunnels.length === 1 ? tunnels[0] : undefined;
  const addresses =
    only !== undefined
      ? [...formatField("State", formatConnection(only), width), ...formatForwarding(only, width)]
      : formatTunnels(tunnels, state.selectedTunnel, width, Math.max(4, Math.floor(height / 2)));
  const warnings = tunnels.flatMap((tunnel) =>
    tunnel.warnings.map((text) => (only ? text : `${tunnel.name}: ${text}`)),
  );
  // A screen of one TCP tunnel has connections instead of requests.
  const [label, counts] = only?.connections
    ? ["Connections", formatCounts(only.connections)]
    : ["Requests", formatCounts({ count: requests.count, open: requests.openStreams })];
  const refused = tunnels.reduce((sum, tunnel) => sum + tunnel.refused, 0);
  const filter = requests.filter === "" ? "" : `   filter: ${requests.filter}`;
  return [
    ...optional([[{ text: "underpass", style: "bold" }], []]),
    ...required(addresses),
    ...required(formatConnectCommands(tunnels, width)),
    ...formatGates(tunnels, width),
    ...required(formatExpiries(state, width)),
    ...optional(formatAddress("Server", { text: state.server }, width)),
    ...(state.account === undefined
      ? []
      : optional(formatField("Account", [{ text: state.account }], width))),
    ...(inspectorUrl === undefined
      ? []
      : required(formatAddress("Inspector", { text: inspectorUrl, link: inspectorUrl }, width))),
    ...required(formatFileProblems(state.fileProblems, width)),
    ...optional(state.update === undefined ? [] : formatWarning("Update", state.update, width)),
    ...required(warnings.flatMap((text) => formatWarning("Warning", text, width))),
    ...required(notices.flatMap((text) => formatWarning("Note", text, width))),
    ...required(formatField(label, [{ text: counts }, { text: filter, style: "yellow" }], width)),
    ...required(refused === 0 ? [] : formatField("Refused", [{ text: String(refused) }], width)),
    ...optional([[]]),
  ];
}

/** The URL is never cut, because it is what a person came for. */
function formatForwarding(tunnel: TunnelView, width: number): Line[] {
  const { url, local } = tunnel;
  const address = getAddress(tunnel);
  const link = url === undefined ? {} : { link: url };
  const asSpan = (text: string): Span => ({ text, style: "bold", ...link });
  const line = [asSpan(address), { text: ` -> ${local}` }];
  // A narrow screen has the URL on rows of its own, which can be selected as a whole.
  const label = width < LABELS_MIN_WIDTH ? "" : "Forwarding";
  const room = width - getWidth(formatLabel(label, width));
  if (getWidth(getLineText(line)) <= room) return formatField(label, line, width);
  const [first = "", ...rest] = breakText(address, room);
  return [
    ...formatField(label, [asSpan(first)], width),
    ...rest.flatMap((part) => formatField("", [asSpan(part)], width)),
    ...breakText(`-> ${local}`, room).flatMap((part) => formatField("", [{ text: part }], width)),
  ];
}

/** The commands that connect to private tunnels. */
function formatConnectCommands(tunnels: readonly TunnelView[], width: number): Line[] {
  const commands = tunnels.flatMap((tunnel) => getConnectCommand(tunnel) ?? []);
  const shown = commands.slice(0, PRIVATE_TUNNELS_SHOWN);
  const hidden = commands.length - shown.length;
  const rest = `and ${formatCount(hidden, "more private tunnel")}`;
  return (hidden === 0 ? shown : [...shown, rest]).flatMap((text, at) =>
    formatMessage(at === 0 ? "Connect" : "", text, width),
  );
}

/** What visitors must bring, and how to remove gates that this command did not set. */
function formatGates(tunnels: readonly TunnelView[], width: number): HeadLine[] {
  const gated = tunnels.flatMap(({ name, gates }) => {
    const visitors = gates && describeGates(gates);
    if (!visitors) return [];
    const prefix = tunnels.length === 1 ? "" : `${name}: `;
    return [
      {
        visitors: prefix + visitors,
        unchanged: describeUnchangedGates(gates, name === "" ? "command_line" : "file"),
      },
    ];
  });
  const shown = gated.slice(0, GATED_TUNNELS_SHOWN);
  const hidden = gated.length - shown.length;
  const lines = shown.flatMap(({ visitors, unchanged }, at) => [
    ...required(formatMessage(at === 0 ? "Visitors" : "", visitors, width)),
    ...(unchanged === undefined ? [] : optional(formatMessage("", unchanged, width))),
  ]);
  const rest = `and ${formatCount(hidden, "more tunnel")} with gates`;
  return hidden === 0 ? lines : [...lines, ...required(formatMessage("", rest, width))];
}

/** When tunnels expire; of several tunnels, only the first to expire are named. */
function formatExpiries({ tunnels, nowMs }: ScreenState, width: number): Line[] {
  const expiring = tunnels
    .flatMap(({ name, expiresAt }) => (expiresAt === undefined ? [] : [{ name, expiresAt }]))
    .toSorted((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt));
  if (expiring.length === 0) return [];
  const shown = expiring.slice(0, EXPIRING_TUNNELS_SHOWN).map(({ name, expiresAt }) => {
    const text = formatComingExpiry(expiresAt, nowMs);
    return tunnels.length === 1 ? text : `${name} ${text}`;
  });
  const hidden = expiring.length - shown.length;
  const texts = hidden === 0 ? shown : [...shown, `${hidden} more later`];
  return formatMessage("Expires", texts.join(", "), width);
}

function formatField(label: string, spans: Span[], width: number): Line[] {
  return [[{ text: formatLabel(label, width) }, ...spans]];
}

function formatLabel(label: string, width: number): string {
  if (width >= LABELS_MIN_WIDTH) return label.padEnd(LABEL_WIDTH);
  return label === "" ? "" : `${label} `;
}

/** An address follows below its label where they don't fit together, and is broken and never cut. */
function formatAddress(label: string, address: Span, width: number): Line[] {
  const isNarrow = width < LABELS_MIN_WIDTH;
  if (!isNarrow || getWidth(`${label} ${address.text}`) <= width)
    return formatField(label, [address], width);
  return [
    [{ text: label }],
    ...breakText(address.text, width).map((text): Line => [{ ...address, text }]),
  ];
}

function formatFileProblems(problems: string[], width: number): Line[] {
  if (problems.length === 0) return [];
  const shown = problems.slice(0, FILE_PROBLEMS_SHOWN);
  const rest = problems.length > shown.length ? ["and more problems"] : [];
  return [...shown, ...rest, "the tunnels stay as they are"].flatMap((text, at) =>
    formatWarning(at === 0 ? "File" : "", text, width),
  );
}

function formatWarning(label: string, text: string, width: number): Line[] {
  return formatMessage(label, text, width, "yellow");
}

/** A message is wrapped and never cut. */
function formatMessage(label: string, text: string, width: number, style?: Style): Line[] {
  const asSpan = (part: string): Span => ({ text: part, ...(style && { style }) });
  if (width < LABELS_MIN_WIDTH)
    return wrapText(formatLabel(label, width) + text, width).map((part) => [asSpan(part)]);
  return wrapText(text, width - LABEL_WIDTH).flatMap((part, at) =>
    formatField(at === 0 ? label : "", [asSpan(part)], width),
  );
}

function formatOverlay({ overlay }: ScreenState, width: number): Line[] {
  if (overlay === "keys") {
    return KEYS.flatMap(([key, , action]) => {
      const [first = "", ...rest] = wrapText(action, Math.max(1, width - KEY_WIDTH));
      return [
        [{ text: key.padEnd(KEY_WIDTH), style: "bold" as const }, { text: first }],
        ...rest.map((text): Line => [{ text: " ".repeat(KEY_WIDTH) + text }]),
      ];
    });
  }
  return (overlay?.qrCode ?? []).map((text): Line => [{ text }]);
}

function formatFooter(state: ScreenState, width: number): Line {
  const { isTypingFilter, requests, result, overlay, hasKeys, countOpenAtStop } = state;
  if (isTypingFilter) {
    const help = "   Enter keeps it, Esc clears it";
    const typed = cutStart(`filter: ${requests.filter}_`, width);
    return [
      { text: typed, style: "bold" },
      { text: help, style: "dim" },
    ];
  }
  if (countOpenAtStop) return formatStop(countOpenAtStop(), width);
  if (result !== "") return [{ text: cutText(result, width), style: "bold" }];
  if (!hasKeys) return [{ text: "Ctrl+C quits", style: "dim" }];
  if (overlay !== null) return [{ text: "any key closes this", style: "dim" }];
  return [{ text: fitKeys(state, width), style: "dim" }];
}

/** The key that quits at once comes first, because a narrow screen cuts the end. */
function formatStop(openRequests: number, width: number): Line {
  const text = `q or Ctrl+C quits now; ${formatStopping(openRequests)}`;
  return [{ text: cutText(text, width), style: "yellow" }];
}

/** As many keys as fit; the last ones, which show all others, always. */
function fitKeys({ inspectorUrl, tunnels }: ScreenState, width: number): string {
  const usable = KEYS.filter(([key]) => key !== "Tab" || tunnels.length > 1);
  const names = usable.map(([key, name]) =>
    key === "o" && inspectorUrl === undefined ? "o dashboard" : `${key} ${name}`,
  );
  const help = names.pop() ?? "";
  while (names.length > 1 && getWidth([...names, help].join("  ")) > width) names.pop();
  return [...names, help].join("  ");
}
