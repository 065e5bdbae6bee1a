/**
 * Captured requests. The service captures every request that reached a tunnel, including those that were refused,
 * failed or aborted, WebSockets with their messages and event streams with their events.
 */
import { z } from "zod";
import { ERROR_CODES } from "../../errors.ts";
import {
  HEADER_NAME_MAX_CHARS,
  LISTED_PATH_MAX_CHARS,
  LISTED_QUERY_MAX_CHARS,
} from "../../limits.ts";
import { FIELD_NAME_RULE, Instant } from "../scalars.ts";

const REDACTED_HEADERS_MAX = 100;

/** The header of a replay: the id of the request that is sent again. Visitors can't set it. */
export const REPLAY_HEADER = "underpass-replay";
/** Replaces the value of a header that is not stored. */
export const REDACTED = "[redacted]";

export const CaptureKind = z.enum(["http", "websocket", "sse"]);
export type CaptureKind = z.infer<typeof CaptureKind>;

/**
 * `open`: in progress. `complete`: the response was sent completely. `aborted`: the visitor left before that, or the
 * server stopped. `failed`: there was no complete response. `refused`: by the tunnel's access policy.
 */
export const CaptureState = z.enum(["open", "complete", "aborted", "failed", "refused"]);
export type CaptureState = z.infer<typeof CaptureState>;

export const CaptureSummary = z.object({
  id: z.uuid(),
  tunnel_id: z.uuid(),
  timestamp: Instant.describe("When the request was received."),
  method: z.string(),
  path: z.string().describe(`Without the query: its first ${LISTED_PATH_MAX_CHARS} characters.`),
  query: z
    .string()
    .nullable()
    .optional()
    .describe(
      `As it was sent, without the question mark: its first ${LISTED_QUERY_MAX_CHARS} characters. null without a query; absent for capability tokens.`,
    ),
  status: z.int().nullable().describe("The status that the visitor got; null until then."),
  latency_ms: z
    .int()
    .nullable()
    .describe("Until the head of the response was received; null until then."),
  duration_ms: z.int().nullable().describe("Until the request was finished; null until then."),
  request_size: z
    .int()
    .describe("Bytes of the whole body, or of all the messages of a WebSocket, stored or not."),
  response_size: z.int(),
  client_ip: z.string(),
  kind: CaptureKind,
  state: CaptureState.describe("Whether the request has ended, and how."),
  error: z
    .enum(ERROR_CODES)
    .nullable()
    .describe("Why there was no response of the local server, or no complete one."),
  replay_of: z.uuid().nullable().describe("The request that this one replayed."),
  request_head_missing: z
    .literal(true)
    .optional()
    .describe(
      "Whether the request's headers were not stored, so that it can't be replayed (`truncated.request_head`). Absent otherwise.",
    ),
});
export type CaptureSummary = z.infer<typeof CaptureSummary>;

/** A message of a WebSocket. */
export const CapturedMessage = z.object({
  timestamp: Instant,
  from: z.enum(["client", "server"]).describe("The sender."),
  kind: z.enum(["text", "binary", "close"]),
  size: z.int().describe("Bytes of the whole message."),
  data: z
    .string()
    .describe("Its first bytes in base64. For a close: two bytes of its code, then the reason."),
});
export type CapturedMessage = z.infer<typeof CapturedMessage>;

/** A server-sent event. */
export const CapturedSseEvent = z.object({
  timestamp: Instant,
  size: z
    .int()
    .describe("Bytes of the whole event as it was sent, without the empty line that ends it."),
  event: z.string(),
  id: z.string().nullable(),
  data: z.string().describe("Its beginning."),
});
export type CapturedSseEvent = z.infer<typeof CapturedSseEvent>;

/** What refused a visitor's request: a gate of the tunnel, an action of its traffic policy, or the service itself. */
export const RefusedBy = z.enum([
  "ip_allowlist",
  "password",
  "sign_in",
  "deny",
  "jwt_validation",
  "rate_limit",
  "maintenance",
  "plan",
  "api_token",
]);
export type RefusedBy = z.infer<typeof RefusedBy>;

export const CaptureDetail = CaptureSummary.extend({
  path: z.string().describe("Without the query."),
  query: z
    .string()
    .nullable()
    .describe("As it was sent, without the question mark; null without a query."),
  refused_by: RefusedBy.nullable().describe(
    "What refused the request: one of the tunnel's gates, an action of its policy, maintenance, the plan, or the rule that tunnels don't receive access tokens of the API. null for other requests.",
  ),
  request_headers: z
    .record(z.string(), z.string())
    .describe(
      "Names in lower case. Headers with the same name are joined by a comma, `set-cookie` by a line break. The value of a redacted header is `[redacted]`.",
    ),
  response_headers: z.record(z.string(), z.string()),
  request_body: z
    .string()
    .describe("Base64 of the bytes as they were sent, whatever their encoding."),
  response_body: z.string(),
  truncated: z
    .object({
      request: z
        .boolean()
        .describe(
          "Whether bytes of the request's body are missing: it was too long, or was not read, or bodies are not captured.",
        ),
      response: z.boolean().describe("The same for the response's body."),
      request_head: z
        .boolean()
        .describe(
          "Whether the request's headers, and the end of a long path or query, are missing: too many exchanges had large ones, or the tunnel captured too much.",
        ),
      response_head: z
        .boolean()
        .describe("Whether the response's headers are missing, for the same reason."),
    })
    .describe("Which parts of the exchange are missing, or not stored completely."),
  frames: z
    .array(CapturedMessage)
    .describe("Those of the `frames_total` messages of a WebSocket that are stored, oldest first."),
  frames_total: z.int(),
  events: z
    .array(CapturedSseEvent)
    .describe(
      "Those of the `events_total` events of an event stream that are stored, oldest first. Empty when the stream is compressed.",
    ),
  events_total: z.int(),
});
export type CaptureDetail = z.infer<typeof CaptureDetail>;

export interface CaptureFilter {
  limit: number;
  /** An id: only older requests. */
  after?: string | undefined;
  method?: string | undefined;
  /** A status, or 1 to 5 for a class of statuses. */
  status?: number | undefined;
  /** A part of the path. */
  path?: string | undefined;
  /** Only requests that were received at this time or later, in ms since the epoch. */
  sinceMs?: number | undefined;
}

/** The changes to a request before it is sent again. */
export interface ReplayChanges {
  method?: string | undefined;
  path?: string | undefined;
  /** null: without a query and its question mark. */
  query?: string | null | undefined;
  /** Headers to set; null removes the header. */
  headers?: Record<string, string | null> | undefined;
  body?: Uint8Array | undefined;
}

/**
 * `cut`: the stored body is not complete, and no other was given. `head_cut`: the headers were not stored.
 * `not_replayable`: a WebSocket.
 */
export type ReplayRefusal =
  | "not_found"
  | "replay_disabled"
  | "cut"
  | "head_cut"
  | "not_replayable"
  | "agent_offline"
  /** Its capture could not be stored. */
  | "low_disk";
/** `id` is that of the new capture, which is finished or was aborted. */
export type ReplayOutcome = { id: string } | { refused: ReplayRefusal };

const DEFAULT_REDACTED = ["authorization", "cookie", "set-cookie", "proxy-authorization"];

/** Which requests of a tunnel are captured, and which parts of them. */
export const CaptureSettings = z.object({
  capture: z.boolean().default(true),
  redactHeaders: z
    .array(
      z
        .string()
        .max(HEADER_NAME_MAX_CHARS)
        .regex(...FIELD_NAME_RULE)
        .toLowerCase(),
    )
    .max(REDACTED_HEADERS_MAX)
    .transform((names) => [...new Set(names)])
    .default(DEFAULT_REDACTED)
    .describe("Names of headers whose values are never stored."),
  allowReplay: z
    .boolean()
    .default(false)
    .describe("Whether members may send a captured request again."),
  bodies: z.boolean().default(true),
});
export type CaptureSettings = z.infer<typeof CaptureSettings>;
export const TunnelCaptureSettings = CaptureSettings.extend({
  id: z.uuid(),
  serverAllowsReplay: z
    .boolean()
    .describe(
      "Whether the server allows replays (`ALLOW_REPLAY`). Without it, `allowReplay` has no effect.",
    ),
});
export type TunnelCaptureSettings = z.infer<typeof TunnelCaptureSettings>;

/** The settings as the tunnel's object gets them. The version of a tunnel only increases. */
export interface VersionedCaptureSettings extends CaptureSettings {
  version: number;
  /** From the organization's plan. */
  retentionDays: number;
}
