/**
 * What is kept of visitors' requests, and what of it is said. The service keeps every request that reached a
 * tunnel: also those that were refused, failed or given up, WebSockets with their messages and event streams
 * with their events.
 */
import { z } from "zod";
import { STATUS_BY_CODE, type ErrorCode } from "../../errors.ts";
import { HEADER_NAME_MAX_CHARS } from "../../limits.ts";
import { FIELD_NAME, Instant } from "../scalars.ts";

const REDACTED_HEADERS_MAX = 100;

/** Of a replay: the id of the request that is sent again. Visitors can't set it. */
export const REPLAY_HEADER = "underpass-replay";
/** What stands where a header's value was that is not kept. */
export const REDACTED = "[redacted]";

export const CaptureKind = z.enum(["http", "websocket", "sse"]);
export type CaptureKind = z.infer<typeof CaptureKind>;

/**
 * `open`: still going on. `complete`: answered to the end. `aborted`: the visitor left before, or the server
 * stopped. `failed`: there was no whole answer. `refused`: by what the owner has put before the tunnel.
 */
export const CaptureState = z.enum(["open", "complete", "aborted", "failed", "refused"]);
export type CaptureState = z.infer<typeof CaptureState>;

export const CaptureSummary = z.object({
  id: z.uuid(),
  tunnel_id: z.uuid(),
  /** When the request came. */
  timestamp: Instant,
  method: z.string(),
  /** Without the query. */
  path: z.string(),
  /** What the visitor got; null while nothing was answered. */
  status: z.int().nullable(),
  /** Until the head of the answer was there; null while it is not. */
  latency_ms: z.int().nullable(),
  /** Until all was over; null while it is not. */
  duration_ms: z.int().nullable(),
  /** Bytes of the whole body, or of all the messages of a WebSocket, kept or not. */
  request_size: z.int(),
  response_size: z.int(),
  client_ip: z.string(),
  kind: CaptureKind,
  state: CaptureState,
  /** Why there was no answer of the local server, or no whole one. */
  error: z.enum(Object.keys(STATUS_BY_CODE) as [ErrorCode, ...ErrorCode[]]).nullable(),
  /** The request that this one repeated. */
  replay_of: z.uuid().nullable(),
});
export type CaptureSummary = z.infer<typeof CaptureSummary>;

/** A message of a WebSocket. */
export const CapturedFrame = z.object({
  timestamp: Instant,
  /** Who sent it. */
  from: z.enum(["client", "server"]),
  kind: z.enum(["text", "binary", "close"]),
  /** Bytes of the whole message. */
  size: z.int(),
  /** Its first bytes in base64. Of a close: two bytes of its code, then the reason. */
  data: z.string(),
});
export type CapturedFrame = z.infer<typeof CapturedFrame>;

/** A server-sent event. */
export const CapturedSseEvent = z.object({
  timestamp: Instant,
  /** Bytes of the whole event as it was sent, without the empty line that ends it. */
  size: z.int(),
  event: z.string(),
  id: z.string().nullable(),
  /** Its beginning. */
  data: z.string(),
});
export type CapturedSseEvent = z.infer<typeof CapturedSseEvent>;

export const CaptureEvent = CaptureSummary.extend({
  /** As it was sent, without its question mark; null: there was none. */
  query: z.string().nullable(),
  /**
   * Names in lower case. Lines of one name are joined by a comma, those of `set-cookie` by a line break.
   * The value of a redacted one is `[redacted]`.
   */
  request_headers: z.record(z.string(), z.string()),
  response_headers: z.record(z.string(), z.string()),
  /** Base64 of the bytes as they were sent, whatever their encoding. */
  request_body: z.string(),
  response_body: z.string(),
  /** Whether bytes of the body are missing: it was too long, or was not read, or bodies are not kept. */
  truncated: z.object({ request: z.boolean(), response: z.boolean() }),
  /** Of a WebSocket: its newest messages, oldest first, of `frames_total`. */
  frames: z.array(CapturedFrame),
  frames_total: z.int(),
  /** Of an event stream: the same of its events. Empty where the stream is compressed. */
  events: z.array(CapturedSseEvent),
  events_total: z.int(),
});
export type CaptureEvent = z.infer<typeof CaptureEvent>;

export interface CaptureFilter {
  limit: number;
  /** An id: only what came before it. */
  after?: string | undefined;
  method?: string | undefined;
  /** A status, or by 1 to 5 a class of them. */
  status?: number | undefined;
  /** A part of the path. */
  path?: string | undefined;
  /** Only what came at this time or later, in ms since the epoch. */
  sinceMs?: number | undefined;
}

/** What is replaced of a request that is sent again. */
export interface ReplayChanges {
  method?: string | undefined;
  path?: string | undefined;
  /** null: none, and no question mark. */
  query?: string | null | undefined;
  /** Lines to set; null: to leave out. */
  headers?: Record<string, string | null> | undefined;
  body?: Uint8Array | undefined;
}

/**
 * `cut`: the body is not whole, and none was given instead. `not_replayable`: a WebSocket.
 */
export type ReplayRefusal =
  "not_found" | "replay_disabled" | "cut" | "not_replayable" | "agent_offline";
/** `id` is the new capture's: it is over by then, or was given up. */
export type ReplayOutcome = { id: string } | { refused: ReplayRefusal };

const DEFAULT_REDACTED = ["authorization", "cookie", "set-cookie", "proxy-authorization"];

/** What of a tunnel's requests is kept. */
export const CaptureSettings = z.object({
  capture: z.boolean().default(true),
  /** Names of headers whose values are never stored. */
  redactHeaders: z
    .array(
      z
        .string()
        .max(HEADER_NAME_MAX_CHARS)
        .regex(...FIELD_NAME)
        .toLowerCase(),
    )
    .max(REDACTED_HEADERS_MAX)
    .transform((names) => [...new Set(names)])
    .default(DEFAULT_REDACTED),
  /** Whether members may send a captured request again. */
  allowReplay: z.boolean().default(false),
  bodies: z.boolean().default(true),
});
export type CaptureSettings = z.infer<typeof CaptureSettings>;
export const TunnelCaptureSettings = CaptureSettings.extend({ id: z.uuid() });

/** As the tunnel's object is told. Versions of a tunnel only ever grow. */
export interface CapturePolicy extends CaptureSettings {
  version: number;
  /** Of the organization's plan. */
  retentionDays: number;
}
