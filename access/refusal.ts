/** The refusal of a visitor's request. */
import { ERROR_HEADER, isErrorCode, STATUS_BY_CODE, type ErrorCode } from "../protocol/errors.ts";

export interface Refusal {
  code: ErrorCode;
  /** Sent to the visitor. */
  headers?: Record<string, string>;
  /** A text for people, instead of the error page's own. */
  message?: string;
}

export function withRetryAfter(code: ErrorCode, waitMs: number) {
  return { code, headers: { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))) } };
}

/** The object's response, which the edge turns into an error page. */
export function toRefusalResponse({ code, headers, message }: Refusal): Response {
  const response = new Response(message ?? null, { status: STATUS_BY_CODE[code], headers });
  response.headers.set(ERROR_HEADER, code);
  return response;
}

/** All refusals have at least this status, so most responses need no header look-up. */
const REFUSAL_MIN_STATUS = 401;

/** @returns the code of a refusal by the tunnel's object; null when the response is the local server's. */
export function getRefusalCode(response: Response): ErrorCode | null {
  if (response.status < REFUSAL_MIN_STATUS) return null;
  const code = response.headers.get(ERROR_HEADER);
  return code !== null && isErrorCode(code) ? code : null;
}
