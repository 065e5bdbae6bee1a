/** Replays: a captured request is sent again, with optional changes, and both responses are compared. */
import { z } from "zod";
import { METHOD_MAX_CHARS } from "../../limits.ts";
import { HeaderValue, SettableName } from "../access/policies.ts";
import { atMostOne, FIELD_NAME_RULE } from "../scalars.ts";
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
      .regex(FIELD_NAME_RULE[0], "must be an HTTP method")
      // The response to TRACE would show headers that the agent adds, and be captured.
      .regex(
        /^(?!(?:[Cc][Oo][Nn][Nn][Ee][Cc][Tt]|[Tt][Rr][Aa][Cc][Ee])$)/,
        "must not be CONNECT or TRACE",
      )
      .optional(),
    path: z
      .string()
      .max(REPLAY_TARGET_MAX_CHARS)
      .regex(/^\/[!-~]*$/, 'must start with "/" and have only visible ASCII characters')
      .regex(/^[^?#]*$/, "must not contain a query or a fragment")
      .optional(),
    query: z
      .string()
      .max(REPLAY_TARGET_MAX_CHARS)
      .regex(/^[!-~]*$/, "must have only visible ASCII characters")
      .regex(/^[^#]*$/, "must not contain a fragment")
      .nullable()
      .optional()
      .describe("Without the question mark. null: without a query."),
    headers: z
      .record(SettableName, HeaderValue.nullable())
      .refine(
        (lines) => Object.keys(lines).length <= REPLAY_MAX_HEADERS,
        `must have at most ${REPLAY_MAX_HEADERS} headers`,
      )
      .meta({ maxProperties: REPLAY_MAX_HEADERS })
      .optional()
      .describe("By name. null removes the header."),
    body: z
      .string()
      .refine(
        (text) => toUtf8(text).length <= REPLAY_BODY_MAX_BYTES,
        `must have at most ${REPLAY_BODY_MAX_BYTES} bytes`,
      )
      .meta({ maxLength: REPLAY_BODY_MAX_BYTES })
      .optional()
      .describe("The body as text."),
    body_base64: z.base64().max(BASE64_MAX_CHARS).optional().describe("The body as any bytes."),
  })
  .refine(({ body, body_base64 }) => body === undefined || body_base64 === undefined, {
    path: ["body_base64"],
    message: "must not be given together with body",
  })
  .meta(atMostOne("body", "body_base64"));
export type ReplayRequest = z.infer<typeof ReplayRequest>;

const Pair = <Schema extends z.ZodType>(schema: Schema) =>
  z.object({ original: schema, replayed: schema });

const Lines = z.record(z.string(), z.string());

/** One difference between two JSON bodies. */
export const Difference = z.object({
  path: z.string().describe('A JSON pointer (RFC 6901); "" is the whole document.'),
  original: z.string().nullable().describe("In JSON, shortened. null: the value does not exist."),
  replayed: z.string().nullable(),
});
export type Difference = z.infer<typeof Difference>;

/** Two responses side by side. */
export const Comparison = z.object({
  same: z
    .boolean()
    .describe(
      "Whether status, body and headers are equal, as far as both were stored, except headers that always change, such as `date`.",
    ),
  status: Pair(z.int().nullable()).extend({ same: z.boolean() }),
  headers: z.object({
    cut: z
      .boolean()
      .describe("The headers of one of them were not stored: the headers are not compared."),
    added: Lines,
    removed: Lines,
    changed: z.record(z.string(), Pair(z.string())),
  }),
  body: z.object({
    same: z
      .boolean()
      .describe(
        "Whether they are equal byte for byte after decompression, as far as both were stored.",
      ),
    cut: z
      .boolean()
      .describe("One of them was truncated, or not stored: only the stored part is compared."),
    size: Pair(z.int()).describe("In bytes, as they were sent."),
    first_difference: z
      .int()
      .nullable()
      .describe("The position of the first byte that differs; null when they are equal."),
    differences: z
      .array(Difference)
      .nullable()
      .describe("null unless both are JSON. Empty when both have the same value."),
    more_differences: z.boolean().describe("Whether there are more differences than are listed."),
  }),
  latency_ms: Pair(z.number().nullable()),
});
export type Comparison = z.infer<typeof Comparison>;

export const ReplayResult = z.object({
  id: z.uuid().describe("The id of the new captured request."),
  replay_of: z.uuid(),
  comparison: Comparison,
});
export type ReplayResult = z.infer<typeof ReplayResult>;
