/** The lines of requests on the screen. Columns are left out when the screen is narrow, the path last. */
import { escapeControls } from "../../shared/text/escape-controls.ts";
import { formatBytes } from "../output/format/format-bytes.ts";
import { formatCount } from "../output/format/format-count.ts";
import { formatStatus } from "../output/format/format-status.ts";
import { formatTimeOfDay } from "../output/format/format-time-of-day.ts";
import type { Line, Style } from "./line.ts";
import type { RequestEntry, RequestList } from "./request-list.ts";
import { cutText, fitRight, fitText, formatPath, getWidth, wrapText } from "./text.ts";
import { getNameWidth } from "./tunnel-lines.ts";

interface ListedRequests {
  requests: RequestList;
  tunnels: readonly { name: string }[];
  nowMs: number;
}

/** From this width on a column is shown. */
const TIME_MIN_WIDTH = 60;
const SIZE_MIN_WIDTH = 72;
const DURATION_MIN_WIDTH = 36;
/** A path that is cut for a note keeps this much. */
const PATH_MIN_WIDTH = 12;
const SECOND_MS = 1_000;
const MINUTE_S = 60;

/**
 * @returns at most `height` lines: the newest requests, those around the selected one, or why the filter leaves none. Below the
 * selected one follows what its row has no room for.
 */
export function formatRequests(state: ListedRequests, width: number, height: number): Line[] {
  const note = state.requests.filterNote;
  if (note !== undefined) {
    const lines = wrapText(note, width).map((text): Line => [{ text, style: "yellow" }]);
    return lines.slice(0, height);
  }
  const listed = state.requests.list();
  const { selected } = state.requests;
  const at = selected ? listed.indexOf(selected) : -1;
  const first = Math.max(0, Math.min(at - Math.floor(height / 2), listed.length - height));
  const shown = listed.slice(first, first + height);
  // Requests of a tunnel that was removed stay in the list.
  const names = new Set([
    ...state.tunnels.map(({ name }) => name),
    ...shown.map(({ tunnel }) => tunnel),
  ]);
  const nameWidth = names.size > 1 ? getNameWidth(names) : 0;
  const rows = shown.map((entry) =>
    formatRequest(entry, { width, nameWidth, nowMs: state.nowMs, isSelected: entry === selected }),
  );
  const lines = rows.map(({ line }) => line);
  if (at < 0) return lines;
  const selectedAt = at - first;
  const rest = formatShortened(rows[selectedAt]?.shortened ?? [], width, height - 1);
  const start = Math.max(0, selectedAt + 1 + rest.length - height);
  lines.splice(selectedAt + 1, 0, ...rest);
  return lines.slice(start, start + height);
}

/** The texts that a row has shortened, in full as far as there is room. */
function formatShortened(texts: string[], width: number, height: number): Line[] {
  const room = Math.max(1, width - 2);
  const lines = texts.flatMap((text) => wrapText(text, room));
  const shown = lines.slice(0, height);
  const last = shown.at(-1);
  if (last !== undefined && lines.length > height) shown[height - 1] = cutText(`${last} …`, room);
  return shown.map((text) => [{ text: `  ${text}` }]);
}

interface RowOptions {
  width: number;
  /** 0 when there is one tunnel: its name needs no column. */
  nameWidth: number;
  nowMs: number;
  isSelected: boolean;
}

/** @returns the row of a request, and the texts that it shortens. */
function formatRequest(
  entry: RequestEntry,
  { width, nameWidth, nowMs, isSelected }: RowOptions,
): { line: Line; shortened: string[] } {
  const { report, atMs, isOpen, tunnel } = entry;
  const { method } = report;
  const columns = [
    isSelected ? ">" : " ",
    ...(width >= TIME_MIN_WIDTH ? [formatTimeOfDay(new Date(atMs))] : []),
    ...(nameWidth > 0 ? [fitText(tunnel, nameWidth)] : []),
  ];
  const before = `${columns.join(" ")}${columns.length > 1 ? " " : ""}`;
  const after = [
    fitText(escapeControls(method), width >= DURATION_MIN_WIDTH ? 7 : 4),
    ...(width >= DURATION_MIN_WIDTH ? [fitRight(formatDuration(entry, nowMs), 9)] : []),
    ...(width >= SIZE_MIN_WIDTH
      ? [fitRight(formatBytes(report.bytesIn + report.bytesOut), 10)]
      : []),
  ].join(" ");
  const room = width - getWidth(before) - 3 - 1 - getWidth(after) - 2;
  const [wholePath, notes] = [formatPath(report.path), getNotes(entry)];
  const { path, note } = fitPath(wholePath, notes, room);
  const { status, style } = getStatus(report);
  const line: Line = [
    { text: before, ...(isSelected ? { style: "inverse" as const } : {}) },
    { text: fitRight(status, 3), style },
    { text: ` ${after}  ` },
    { text: path, ...(isOpen ? { style: "bold" as const } : {}) },
    { text: note, style: "dim" },
  ];
  const [wholeNote = ""] = notes;
  const shortened = [
    ...(note === wholeNote ? [] : [wholeNote.trim()]),
    ...(path === wholePath ? [] : [wholePath]),
  ];
  return { line, shortened };
}

function getStatus({ kind, status, problem }: RequestEntry["report"]): {
  status: string;
  style: Style;
} {
  if (kind === "connection")
    return { status: "tcp", style: problem === undefined ? "green" : "red" };
  return {
    status: formatStatus(status),
    style: status >= 500 ? "red" : status >= 400 || status === 0 ? "yellow" : "green",
  };
}

/** @returns the notes that may follow the path, the longest first. */
function getNotes({ report, isOpen, isReplay, closedAtMs }: RequestEntry): string[] {
  const { problem, kind, messages } = report;
  if (problem !== undefined) return [`  ${escapeControls(problem)}`];
  if (!isOpen && closedAtMs === null) {
    const { abortReason } = report;
    if (abortReason !== undefined) return [`  ${escapeControls(abortReason)}`];
    return isReplay ? ["  replay"] : [];
  }
  const state = isOpen ? "open" : "closed";
  if (kind === "events") {
    return [`  event stream ${state}${isReplay ? ", replay" : ""}`, `  ${state}`];
  }
  const count = formatCount(messages, "message");
  return [`  WebSocket ${state}, ${count}`, `  ${state}, ${count}`, `  ${state}`];
}

/** The longest note that leaves the path complete or readable; a problem is cut instead. */
function fitPath(path: string, notes: string[], room: number): { path: string; note: string } {
  const pathMin = Math.min(getWidth(path), PATH_MIN_WIDTH);
  const last = notes.at(-1) ?? "";
  const whole = notes.find((text) => getWidth(path) + getWidth(text) <= room);
  const note = whole ?? cutText(last, Math.max(0, room - pathMin));
  return { path: cutText(path, room - getWidth(note)), note };
}

/** How long a request took, or how long a stream has been open. */
function formatDuration({ report, isOpen, atMs, closedAtMs }: RequestEntry, nowMs: number): string {
  const isStream = isOpen || closedAtMs !== null;
  const ms = isStream ? Math.max(0, (closedAtMs ?? nowMs) - atMs) : report.durationMs;
  // A connection may have been open for hours.
  const isLong = report.kind === "connection" && ms >= MINUTE_S * SECOND_MS;
  if (!isStream && !isLong) return formatMs(ms);
  const seconds = Math.floor(ms / SECOND_MS);
  if (seconds < MINUTE_S) return `${seconds} s`;
  const minutes = Math.floor(seconds / MINUTE_S);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

export function formatMs(ms: number): string {
  if (ms < 10) return `${ms} ms`;
  return ms < 10 * SECOND_MS ? `${Math.round(ms)} ms` : `${(ms / SECOND_MS).toFixed(1)} s`;
}
