/** Replays: a captured request is sent again, with optional changes, and both responses are compared. */
import { z } from "zod";
import { METHOD_MAX_CHARS } from "../../limits.ts";
import { HeaderValue, SettableName } from "../access/policies.ts";
import { toUtf8 } from "../../../shared/bytes.ts";

/** For an edited path, and for an edited query. */
const REPLAY_TARGET_MAX_CHARS = 8_000;
const REPLAY_MAX_HEADERS = 100;
const REPLAY_BODY_MAX_BYTES = 512 * 1024;

const BASE64_MAX_CHARS = Math.ceil(REPLAY_BODY_MAX_BYTES / 3) * 4;

/** Fields that are left out stay as they were. */
export const ReplayRequest = z
  .object({
    method: z
      .string()
      .max(METHOD_MAX_CHARS)
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "must be an HTTP method")
      .refine((method) => method.toUpperCase() !== "CONNECT", "must not be CONNECT")
      .optional(),
    path: z
      .string()
      .max(REPLAY_TARGET_MAX_CHARS)
      .regex(/^\/[!-~]*$/, 'must start with "/" and have only visible ASCII characters')
      .regex(/^[^?#]*$/, "must not contain a query or a fragment")
      .optional(),
    /** Without the question mark. null: without a query. */
    query: z
      .string()
      .max(REPLAY_TARGET_MAX_CHARS)
      .regex(/^[!-~]*$/, "must have only visible ASCII characters")
      .regex(/^[^#]*$/, "must not contain a fragment")
      .nullable()
      .optional(),
    /** By name. null removes the header. */
    headers: z
      .record(SettableName, HeaderValue.nullable())
      .refine(
        (lines) => Object.keys(lines).length <= REPLAY_MAX_HEADERS,
        `must have at most ${REPLAY_MAX_HEADERS} headers`,
      )
      .optional(),
    /** The body as text. */
    body: z
      .string()
      .refine(
        (text) => toUtf8(text).length <= REPLAY_BODY_MAX_BYTES,
        `must have at most ${REPLAY_BODY_MAX_BYTES} bytes`,
      )
      .optional(),
    /** The body as any bytes. */
    body_base64: z.base64().max(BASE64_MAX_CHARS).optional(),
  })
  .refine(({ body, body_base64 }) => body === undefined || body_base64 === undefined, {
    path: ["body_base64"],
    message: "must not be given together with body",
  });
export type ReplayRequest = z.infer<typeof ReplayRequest>;

const Pair = <Schema extends z.ZodType>(schema: Schema) =>
  z.object({ original: schema, replayed: schema });

const Lines = z.record(z.string(), z.string());

/** One difference between two JSON bodies. */
export const Difference = z.object({
  /** A JSON pointer (RFC 6901); "" is the whole document. */
  path: z.string(),
  /** In JSON, shortened. null: the value does not exist. */
  original: z.string().nullable(),
  replayed: z.string().nullable(),
});
export type Difference = z.infer<typeof Difference>;

/** Two responses side by side. */
export const Comparison = z.object({
  /** Whether status, body and headers are equal, except headers that always change, such as `date`. */
  same: z.boolean(),
  status: Pair(z.int().nullable()).extend({ same: z.boolean() }),
  headers: z.object({
    added: Lines,
    removed: Lines,
    changed: z.record(z.string(), Pair(z.string())),
  }),
  body: z.object({
    /** Whether they are equal byte for byte after decompression, as far as both were stored. */
    same: z.boolean(),
    /** One of them was truncated, or not stored: only the stored part is compared. */
    cut: z.boolean(),
    /** In bytes, as they were sent. */
    size: Pair(z.int()),
    /** The position of the first byte that differs; null when they are equal. */
    first_difference: z.int().nullable(),
    /** null unless both are JSON. Empty when both have the same value. */
    differences: z.array(Difference).nullable(),
    /** Whether there are more differences than are listed. */
    more_differences: z.boolean(),
  }),
  latency_ms: Pair(z.number().nullable()),
});
export type Comparison = z.infer<typeof Comparison>;

export const ReplayResult = z.object({
  /** The id of the new captured request. */
  id: z.uuid(),
  replay_of: z.uuid(),
  comparison: Comparison,
});
export type ReplayResult = z.infer<typeof ReplayResult>;
