/** A captured exchange as a tunnel stores it, and as the API sends it. */
import type { CapturedVisit } from "../../../access/policy-dry-run.ts";
import { shortenPath } from "../../../access/paths/denied-paths.ts";
import { toBase64, toUtf8 } from "../../../shared/bytes.ts";
import type { ErrorCode } from "../../../protocol/errors.ts";
import type {
  CapturedMessage,
  CapturedSseEvent,
  CaptureDetail,
  CaptureFilter,
  CaptureKind,
  CaptureState,
  CaptureSummary,
  RefusedBy,
} from "../../../protocol/schemas/inspector/captures.ts";
import { LISTED_PATH_MAX_CHARS, LISTED_QUERY_MAX_CHARS } from "../../../protocol/limits.ts";
import { headerPairs } from "../../../shared/raw-headers.ts";

/** The part of a capture that lists show. */
export interface CaptureRecord {
  id: string;
  atMs: number;
  method: string;
  path: string;
  query: string | null;
  status: number | null;
  latencyMs: number | null;
  durationMs: number | null;
  requestSize: number;
  responseSize: number;
  clientIp: string;
  kind: CaptureKind;
  state: CaptureState;
  error: ErrorCode | null;
  replayOf: string | null;
  /** Only of refused requests. */
  refusedBy?: RefusedBy;
  /** The request's headers were not stored, and of a long target only the beginning. */
  isRequestHeadCut?: boolean;
  /** The response's headers were not stored. */
  isResponseHeadCut?: boolean;
}

/** Redacted headers, as names and values in turn. */
export interface HeadLines {
  request: string[];
  response: string[];
}

export interface CapturedBody {
  bytes: Uint8Array;
  /** Bytes are missing. */
  isCut: boolean;
}

export interface CapturedBodies {
  request: CapturedBody;
  response: CapturedBody;
}

/** How many messages or events there were, and which pages of them are stored. */
export interface StreamLog {
  total: number;
  firstPage: number;
  lastPage: number;
}

/** `bytes` is null for a body that is stored separately. */
export interface StoredBody {
  bytes: Uint8Array | null;
  isCut: boolean;
}

export interface StoredDetail {
  lines: HeadLines;
  bodies: { request: StoredBody; response: StoredBody };
}

/** A capture that is or was open for long. */
export interface LongLivedRow extends StoredDetail {
  record: CaptureRecord;
  log: StreamLog;
}

/** A complete capture. */
export interface Capture {
  record: CaptureRecord;
  lines: HeadLines;
  bodies: CapturedBodies;
  log: StreamLog;
  /** The newest ones, oldest first. */
  entries: StreamEntry[];
}

/** One message of a WebSocket, or one server-sent event. */
export type StreamEntry = StreamMessage | SseEvent;

export interface StreamMessage {
  atMs: number;
  size: number;
  from: "client" | "server";
  kind: "text" | "binary" | "close";
  data: Uint8Array;
}

export interface SseEvent {
  atMs: number;
  size: number;
  event: string;
  id: string | null;
  data: string;
}

/** About how much the texts or bytes of a message or an event take. */
export function countEntryBytes(entry: StreamEntry): number {
  if ("from" in entry) return entry.data.byteLength;
  return entry.data.length + entry.event.length + (entry.id?.length ?? 0);
}

export function matchesFilter(record: CaptureRecord, filter: CaptureFilter): boolean {
  const { method, status, path } = filter;
  if (method !== undefined && record.method.toUpperCase() !== method) return false;
  if (path !== undefined && !record.path.includes(path)) return false;
  if (status === undefined) return true;
  return record.status === status || Math.floor((record.status ?? 0) / 100) === status;
}

export function toSummary(record: CaptureRecord, tunnelId: string): CaptureSummary {
  return {
    id: record.id,
    tunnel_id: tunnelId,
    timestamp: new Date(record.atMs).toISOString(),
    method: record.method,
    path: cutPath(record.path),
    query: record.query === null ? null : cutText(record.query, LISTED_QUERY_MAX_CHARS),
    status: record.status,
    latency_ms: record.latencyMs,
    duration_ms: record.durationMs,
    request_size: record.requestSize,
    response_size: record.responseSize,
    client_ip: record.clientIp,
    kind: record.kind,
    state: record.state,
    error: record.error,
    replay_of: record.replayOf,
    ...(record.isRequestHeadCut && { request_head_missing: true }),
  };
}

/** The part of a path that lists show. */
export function cutPath(path: string): string {
  return cutText(path, LISTED_PATH_MAX_CHARS);
}

/** The beginning of a text, as a text of its own: a slice would keep all of it in memory. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  return new TextDecoder().decode(toUtf8(text.slice(0, maxChars)));
}

/** Its headers are stored elsewhere, so `authorization` is null. */
export function toVisit(record: CaptureRecord): CapturedVisit {
  const { id, atMs, method, status, clientIp: address, state, error } = record;
  const path = shortenPath(record.path);
  const refusal = state === "refused" ? error : null;
  const refusedBy = record.refusedBy ?? null;
  return { id, atMs, method, path, address, status, refusal, refusedBy, authorization: null };
}

export function toDetail(capture: Capture, tunnelId: string): CaptureDetail {
  const { record, lines, bodies, log, entries } = capture;
  return {
    ...toSummary(record, tunnelId),
    path: record.path,
    query: record.query,
    refused_by: record.refusedBy ?? null,
    request_headers: toHeaders(lines.request),
    response_headers: toHeaders(lines.response),
    request_body: toBase64(bodies.request.bytes),
    response_body: toBase64(bodies.response.bytes),
    truncated: {
      request: bodies.request.isCut,
      response: bodies.response.isCut,
      request_head: record.isRequestHeadCut === true,
      response_head: record.isResponseHeadCut === true,
    },
    frames: entries.filter((entry) => "from" in entry).map(toCapturedMessage),
    frames_total: record.kind === "websocket" ? log.total : 0,
    events: entries.filter((entry) => "event" in entry).map(toCapturedSseEvent),
    events_total: record.kind === "sse" ? log.total : 0,
  };
}

function toCapturedMessage({ atMs, from, kind, size, data }: StreamMessage): CapturedMessage {
  return { timestamp: new Date(atMs).toISOString(), from, kind, size, data: toBase64(data) };
}

function toCapturedSseEvent({ atMs, size, event, id, data }: SseEvent): CapturedSseEvent {
  return { timestamp: new Date(atMs).toISOString(), size, event, id, data };
}

/** Headers with the same name are joined in the order in which they were sent. */
function toHeaders(lines: string[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of headerPairs(lines)) {
    const lower = name.toLowerCase();
    const previous = headers.get(lower);
    const separator = lower === "set-cookie" ? "\n" : ", ";
    headers.set(lower, previous === undefined ? value : previous + separator + value);
  }
  return Object.fromEntries(headers);
}

/** Where the log of an open recording continues after its pages were dropped. */
export function skipDroppedPages({
  lastPage,
}: StreamLog): Pick<StreamLog, "firstPage" | "lastPage"> {
  return { firstPage: lastPage + 1, lastPage: lastPage + 1 };
}
