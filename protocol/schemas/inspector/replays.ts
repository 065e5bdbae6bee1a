/** A captured request that is sent once more: what may be changed of it, and what came of it. */
import { z } from "zod";
import { METHOD_MAX_CHARS } from "../../limits.ts";
import { HeaderValue, SettableName } from "../access/policies.ts";
import { toUtf8 } from "../../../shared/bytes.ts";

/** Of an edited path, and of an edited query. */
const REPLAY_TARGET_MAX_CHARS = 8_000;
const REPLAY_MAX_HEADERS = 100;
const REPLAY_BODY_MAX_BYTES = 512 * 1024;

const BASE64_MAX_CHARS = Math.ceil(REPLAY_BODY_MAX_BYTES / 3) * 4;

/** What is left out stays as it was. */
export const ReplayRequest = z
  .object({
    method: z
      .string()
      .max(METHOD_MAX_CHARS)
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "must be a method")
      .refine((method) => method.toUpperCase() !== "CONNECT", "can't be CONNECT")
      .optional(),
    path: z
      .string()
      .max(REPLAY_TARGET_MAX_CHARS)
      .regex(/^\/[!-~]*$/, 'must start with "/" and be written in visible ASCII')
      .regex(/^[^?#]*$/, "must be without query and fragment")
      .optional(),
    /** Without its question mark. null: none. */
    query: z
      .string()
      .max(REPLAY_TARGET_MAX_CHARS)
      .regex(/^[!-~]*$/, "must be written in visible ASCII")
      .regex(/^[^#]*$/, "must be without fragment")
      .nullable()
      .optional(),
    /** By name. null: without that line. */
    headers: z
      .record(SettableName, HeaderValue.nullable())
      .refine((lines) => Object.keys(lines).length <= REPLAY_MAX_HEADERS, "are too many")
      .optional(),
    /** As text. */
    body: z
      .string()
      .refine(
        (text) => toUtf8(text).length <= REPLAY_BODY_MAX_BYTES,
        `must be at most ${REPLAY_BODY_MAX_BYTES} bytes`,
      )
      .optional(),
    /** The same for any bytes. */
    body_base64: z.base64().max(BASE64_MAX_CHARS).optional(),
  })
  .refine(({ body, body_base64 }) => body === undefined || body_base64 === undefined, {
    path: ["body_base64"],
    message: "can't be given together with body",
  });
export type ReplayRequest = z.infer<typeof ReplayRequest>;

const Pair = <Schema extends z.ZodType>(schema: Schema) =>
  z.object({ original: schema, replayed: schema });

const Lines = z.record(z.string(), z.string());

/** One place where two bodies in JSON differ. */
export const Difference = z.object({
  /** A JSON pointer (RFC 6901); "" is the whole. */
  path: z.string(),
  /** In JSON, shortened. null: it is not there. */
  original: z.string().nullable(),
  replayed: z.string().nullable(),
});
export type Difference = z.infer<typeof Difference>;

/** Two answers side by side. */
export const Comparison = z.object({
  /** Status, body and all lines that do not change by themselves, as `date` does. */
  same: z.boolean(),
  status: Pair(z.int().nullable()).extend({ same: z.boolean() }),
  headers: z.object({
    added: Lines,
    removed: Lines,
    changed: z.record(z.string(), Pair(z.string())),
  }),
  body: z.object({
    /** Byte for byte once unpacked, as far as both were kept. */
    same: z.boolean(),
    /** One of them was cut, or not kept: what is said here is of the part that was. */
    cut: z.boolean(),
    /** In bytes, as they were sent. */
    size: Pair(z.int()),
    /** Where the first byte is that differs. null: nowhere. */
    first_difference: z.int().nullable(),
    /** Where both are JSON; otherwise null. Empty when they mean the same. */
    differences: z.array(Difference).nullable(),
    /** There are more of them than are listed. */
    more_differences: z.boolean(),
  }),
  latency_ms: Pair(z.number().nullable()),
});
export type Comparison = z.infer<typeof Comparison>;

export const ReplayResult = z.object({
  /** Of the new captured request. */
  id: z.uuid(),
  replay_of: z.uuid(),
  comparison: Comparison,
});
export type ReplayResult = z.infer<typeof ReplayResult>;
