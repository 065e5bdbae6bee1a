/** The refusal of a visitor's request. */
import { ERROR_HEADER, isErrorCode, STATUS_BY_CODE, type ErrorCode } from "../protocol/errors.ts";
import type { RefusedBy } from "../protocol/schemas/inspector/captures.ts";

export interface Refusal {
  code: ErrorCode;
  /** For the owner, not for the visitor. */
  by?: RefusedBy;
  /** Sent to the visitor. */
  headers?: Record<string, string>;
  /** A text for people, instead of the error page's own. */
  message?: string;
}

export function withRetryAfter(code: ErrorCode, waitMs: number) {
  return { code, headers: { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))) } };
}

/** From the object to the edge, percent-encoded. */
const MESSAGE_HEADER = "underpass-refusal-message";

/**
 * The object's response, which the edge turns into an error page. The message is in a header, because reading the body of
 * an object's response makes workerd hold the whole request until the next full garbage collection.
 */
export function toRefusalResponse({ code, headers, message }: Refusal): Response {
  const response = new Response(null, { status: STATUS_BY_CODE[code], headers });
  response.headers.set(ERROR_HEADER, code);
  if (message) response.headers.set(MESSAGE_HEADER, encodeURIComponent(message.toWellFormed()));
  return response;
}

export function getRefusalMessage(refusal: Response): string | null {
  const message = refusal.headers.get(MESSAGE_HEADER);
  return message === null ? null : decodeURIComponent(message);
}

/** All refusals have at least this status. */
const REFUSAL_MIN_STATUS = 401;

/**
 * Does not read the headers: that would create another object for the garbage collector.
 * @returns false when the response is certainly the local server's.
 */
export function mayBeRefusal(response: Response): boolean {
  return response.status >= REFUSAL_MIN_STATUS;
}

/** @returns the code of a refusal by the tunnel's object; null when the response is the local server's. */
export function getRefusalCode(response: Response): ErrorCode | null {
  if (!mayBeRefusal(response)) return null;
  const code = response.headers.get(ERROR_HEADER);
  return code !== null && isErrorCode(code) ? code : null;
}
