/** The messages of the screen about the replay of a request. */
import type { RequestReport } from "../library/types.ts";
import { formatBytes } from "../output/format/format-bytes.ts";
import type { ReplayProblem } from "../tunnel/http-tunnel.ts";
import { STORED_BODY_MAX_BYTES, STORED_MAX_BYTES } from "../origin/stored-requests.ts";
import { formatMs } from "./request-lines.ts";

const EXPLANATIONS: Readonly<Record<ReplayProblem, string>> = {
  websocket: "A WebSocket can't be replayed.",
  incomplete: "Not replayed: it was answered before all of its body was received.",
  too_large: `Not replayed: its body is larger than ${STORED_BODY_MAX_BYTES / 1024} KiB.`,
  forgotten: `Not replayed: only the latest ${STORED_MAX_BYTES / 1024 ** 2} MiB of requests can be replayed.`,
  busy: "Not replayed: all connections to the local server are in use.",
};

export function explainReplayProblem(problem: ReplayProblem): string {
  return EXPLANATIONS[problem];
}

/** `200 as before, 12 ms`, or `500 instead of 200, 12 ms, 2.1 kB instead of 14 B`. */
export function compareReplay(original: RequestReport, replayed: RequestReport): string {
  if (replayed.status === 0) return "Replayed, but the local server has not answered in time.";
  if (original.status === 0)
    return `${replayed.status}, ${formatMs(replayed.durationMs)}; the first time, the visitor did not wait for it`;
  const status =
    replayed.status === original.status
      ? `${replayed.status} as before`
      : `${replayed.status} instead of ${original.status}`;
  if (replayed.kind === "events") return `${status}, the event stream is open`;
  const [size, sizeBefore] = [replayed.bytesOut, original.bytesOut].map(formatBytes);
  const sizes = size === sizeBefore ? "" : `, ${size} instead of ${sizeBefore}`;
  return `${status}, ${formatMs(replayed.durationMs)}${sizes}`;
}
