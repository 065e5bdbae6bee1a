/** The head of a local server's response, as the payload of its frame. */
import { exceedsJsonBounds } from "../../shared/bounds/json-bounds.ts";
import { RESPONSE_HEAD_MAX_BYTES, RESPONSE_HEADERS_MAX } from "../limits.ts";
import { parseJsonPayload } from "./frames.ts";

/** A smaller head is parsed at once, whatever it contains. */
const SMALL_HEAD_MAX_BYTES = 8 * 1024;
/** The array itself, the status, and a name and a value for each header. */
const HEAD_VALUES_MAX = 2 + 2 * RESPONSE_HEADERS_MAX;

export interface ResponseHead {
  status: number;
  /** Header names and values in turn. */
  pairs: string[];
}

/**
 * @returns null when the payload is not a whole number and pairs of strings. HTTP may still forbid the values. `too_large`: the
 * head exceeds `RESPONSE_HEAD_MAX_BYTES` or `RESPONSE_HEADERS_MAX`.
 */
export function parseResponseHead(payload: Uint8Array): ResponseHead | "too_large" | null {
  if (payload.byteLength > RESPONSE_HEAD_MAX_BYTES) return "too_large";
  const isSmall = payload.byteLength <= SMALL_HEAD_MAX_BYTES;
  if (!isSmall && exceedsJsonBounds(payload, HEAD_VALUES_MAX, 1)) return "too_large";
  const head = parseJsonPayload(payload);
  if (!Array.isArray(head) || head.length % 2 !== 1) return null;
  if (head.length > 1 + 2 * RESPONSE_HEADERS_MAX) return "too_large";
  const [status, ...pairs] = head as unknown[];
  if (!Number.isInteger(status)) return null;
  if (!pairs.every((part) => typeof part === "string")) return null;
  return { status: status as number, pairs };
}
