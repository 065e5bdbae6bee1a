/** The failures that the API throws on purpose, and how any failure is put into words. */
import {
  ERROR_HEADER,
  STATUS_BY_CODE,
  type ErrorBody,
  type ErrorCode,
} from "../protocol/errors.ts";

export interface ErrorDetails {
  fields?: ErrorBody["fields"];
  retryAfterSeconds?: number;
  /** Read by us, in logs; it never leaves the Worker. */
  cause?: unknown;
  headers?: Record<string, string>;
}

/** `message` is read by the caller of the API. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.details = details;
  }
}

/** The one place where a failure becomes an answer. */
export function errorResponse({ code, message, details }: ApiError): Response {
  const { fields, retryAfterSeconds } = details;
  const body: ErrorBody = { error: code, message };
  if (fields) body.fields = fields;
  if (retryAfterSeconds !== undefined) body.retry_after_seconds = retryAfterSeconds;

  const headers = new Headers(details.headers);
  headers.set(ERROR_HEADER, code);
  if (retryAfterSeconds !== undefined) headers.set("Retry-After", String(retryAfterSeconds));
  if (code === "unauthorized") headers.set("WWW-Authenticate", "Bearer");
  return Response.json(body, { status: STATUS_BY_CODE[code], headers });
}

/**
 * What was thrown, with its chain of causes: a driver's error says in its cause what happened. Of a query
 * that failed the words are told and not the values: hashes, addresses and sealed texts are among them.
 */
export function describeError(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const own =
    "query" in thrown && typeof thrown.query === "string"
      ? `${thrown.name}: failed query: ${thrown.query}`
      : (thrown.stack ?? `${thrown.name}: ${thrown.message}`);
  return thrown.cause === undefined ? own : `${own}\ncaused by ${describeError(thrown.cause)}`;
}
