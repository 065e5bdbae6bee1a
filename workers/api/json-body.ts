/** Which bodies of requests are parsed as JSON. */
import { HTTPException } from "hono/http-exception";
import { ApiError } from "../errors.ts";
import {
  exceedsJsonBounds,
  JSON_MAX_LEVELS,
  JSON_MAX_VALUES,
  UNBOUNDED_JSON_MAX_BYTES,
} from "../../shared/json-shape.ts";

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

/** @param bytes the size of the body. @throws ApiError 400 `invalid_request`. */
export async function requireBoundedJson(
  bytes: number,
  read: () => Promise<ArrayBuffer>,
): Promise<void> {
  if (bytes <= UNBOUNDED_JSON_MAX_BYTES) return;
  if (exceedsJsonBounds(new Uint8Array(await read()))) {
    throw new ApiError(
      "invalid_request",
      `A request body of this size must have at most ${JSON_MAX_VALUES} values, in at most ${JSON_MAX_LEVELS} levels.`,
    );
  }
}
