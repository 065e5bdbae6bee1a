/** Which bodies of requests are parsed as JSON. */
import { HTTPException } from "hono/http-exception";
import { ApiError } from "../errors.ts";
import {
  exceedsJsonBounds,
  JSON_MAX_LEVELS,
  JSON_MAX_VALUES,
  UNBOUNDED_JSON_MAX_BYTES,
} from "../../shared/bounds/json-bounds.ts";

/** Every text in US-ASCII is the same in UTF-8. */
const UTF8_CHARSETS = /^(?:utf-?8|us-ascii)$/i;

/**
 * The framework decodes no compression, reads every text as UTF-8, and takes a body without a type for an empty object.
 *
 * @param headers by their names in lower case. @throws ApiError 415 `unsupported_media_type`.
 */
export function requireReadableJson(headers: Partial<Record<string, string>>): void {
  const { "content-encoding": encoding = "identity", "content-type": type } = headers;
  if (type === undefined) throw new HTTPException(415);
  if (encoding.toLowerCase() !== "identity") {
    throw new ApiError(
      "unsupported_media_type",
      "The request body must be sent without compression, and without the header Content-Encoding.",
    );
  }
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(type)?.[1] ?? "utf-8";
  if (!UTF8_CHARSETS.test(charset)) {
    throw new ApiError(
      "unsupported_media_type",
      "The request body must be in UTF-8, and the Content-Type names another charset.",
    );
  }
}

/** Refuses bytes that the framework would replace: two names or passwords that differ only in these would be the same. */
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws ApiError 400 `invalid_request` unless the body is UTF-8 and takes little time to parse. */
export function requireParseableJson(body: Uint8Array): void {
  if (!isUtf8(body)) {
    throw new ApiError("invalid_request", "The request body is not valid UTF-8.", {
      fields: [{ path: "", message: "is not valid UTF-8" }],
    });
  }
  if (body.byteLength > UNBOUNDED_JSON_MAX_BYTES && exceedsJsonBounds(body)) {
    throw new ApiError(
      "invalid_request",
      `A request body of this size must have at most ${JSON_MAX_VALUES} values, in at most ${JSON_MAX_LEVELS} levels.`,
    );
  }
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    strictUtf8.decode(bytes);
    return true;
  } catch {
    return false;
  }
}
