/** The output of `underpass logs`: JSON for programs, one line a request for people. */
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import { formatBytes } from "../format/format-bytes.ts";
import { formatTimeOfDay } from "../format/format-time-of-day.ts";
import { printColoredLine, printError, printJson } from "../output.ts";
import { getTerminalWidth } from "../format/table.ts";
import { cutText } from "../../screen/text.ts";
import { cyan, dim, green, red, yellow } from "../format/colors.ts";
import { escapeControls } from "../../../shared/text/escape-controls.ts";
import { PROGRAM } from "../../program.ts";

export interface LogOutput {
  ready(): void;
  /** @param tunnel its name. */
  request(capture: CaptureSummary, tunnel: string): void;
  /** @param count 0: unknown. */
  missed(count: number): void;
  disconnected(reason: string): void;
  reconnected(): void;
  /** No stored request is selected. */
  noMatch(): void;
}

export const LOG_JSON: LogOutput = {
  ready: () => printJson({ event: "ready" }),
  request: (capture, tunnel) => printJson({ event: "request", tunnel, ...capture }),
  missed: (count) => printJson({ event: "missed", count }),
  disconnected: (reason) => printJson({ event: "disconnected", reason }),
  reconnected: () => printJson({ event: "reconnected" }),
  noMatch: () => undefined,
};

/**
 * Notes go to standard error, so that the output has requests only.
 * @param namesTunnels whether requests of several tunnels are shown.
 */
export function createLogLines(namesTunnels: boolean, width = getTerminalWidth()): LogOutput {
  return {
    ready: () => {
      if (width !== undefined) printError("following requests; press Ctrl+C to stop");
    },
    request: (capture, tunnel) =>
      printColoredLine(formatRequest(capture, namesTunnels ? tunnel : undefined, width)),
    missed: (count) => {
      const requests = count === 0 ? "some requests" : `${count} requests`;
      printError(`${requests} are not shown; list them with: ${PROGRAM} logs --since 10m`);
    },
    disconnected: (reason) => printError(`disconnected: ${reason}; reconnecting`),
    reconnected: () => printError("reconnected"),
    noMatch: () => printError("no stored request matches"),
  };
}

/** Where the duration and the size would leave less for the path, they are left out. */
const PATH_MIN_CHARS = 15;

/**
 * @param tunnel its name; undefined: it is not shown.
 * @param width of the terminal; undefined: the time is complete, and nothing is cut.
 */
function formatRequest(
  capture: CaptureSummary,
  tunnel: string | undefined,
  width: number | undefined,
): string {
  const { timestamp, method, status, state, duration_ms: ms, path, error } = capture;
  const isAtTerminal = width !== undefined;
  const time = isAtTerminal ? formatTimeOfDay(new Date(timestamp)) : timestamp;
  const statusText = String(status ?? "-").padEnd(3);
  const outcome = [error ?? [], state === "aborted" ? "aborted" : []].flat().join(" ");
  const figures = [
    (state === "open" ? "open" : formatDuration(ms)).padStart(8),
    formatBytes(capture.request_size + capture.response_size).padStart(9),
  ];
  const names = tunnel === undefined ? [] : [tunnel.padEnd(isAtTerminal ? 12 : 0)];
  const start = escapeControls([time, method.padEnd(7)].join("  "));
  const formatEnd = (columns: string[]): string =>
    escapeControls([...columns, path, outcome === "" ? [] : `(${outcome})`].flat().join("  "));
  if (!isAtTerminal) return `${start}  ${statusText}  ${formatEnd([...figures, ...names])}`;
  const left = width - start.length - statusText.length - 4;
  const hasRoom = left - [...figures, ...names, ""].join("  ").length >= PATH_MIN_CHARS;
  const end = cutText(formatEnd(hasRoom ? [...figures, ...names] : names), Math.max(left, 10));
  return `${dim(start)}  ${colorStatus(status, statusText)}  ${end}`;
}

function colorStatus(status: number | null, text: string): string {
  if (status === null) return dim(text);
  if (status >= 500) return red(text);
  if (status >= 400) return yellow(text);
  return status >= 300 ? cyan(text) : green(text);
}

function formatDuration(ms: number | null): string {
  if (ms === null) return "-";
  return ms < 10_000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}
