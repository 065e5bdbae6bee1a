/** The errors that the API throws deliberately, and how errors are formatted for responses and logs. */
import {
  ERROR_HEADER,
  getDefaultFields,
  STATUS_BY_CODE,
  type ErrorCode,
} from "../protocol/errors.ts";
import type { ErrorBody } from "../protocol/schemas/error-body.ts";
import { describeOutage } from "./database-outage.ts";

interface ErrorDetails {
  fields?: ErrorBody["fields"];
  retryAfterSeconds?: number;
  /** For the log. It is never sent. */
  cause?: unknown;
  headers?: Record<string, string>;
}

/** `message` is sent to the caller of the API. */
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

/** The only place where an error becomes a response. */
export function errorResponse({ code, message, details }: ApiError): Response {
  const { fields = getDefaultFields(code), retryAfterSeconds } = details;
  const body: ErrorBody = { error: code, message };
  if (fields) body.fields = fields;
  if (retryAfterSeconds !== undefined) body.retry_after_seconds = retryAfterSeconds;

  const headers = new Headers(details.headers);
  headers.set(ERROR_HEADER, code);
  if (retryAfterSeconds !== undefined) headers.set("Retry-After", String(retryAfterSeconds));
  if (code === "unauthorized") headers.set("WWW-Authenticate", "Bearer");
  if (code === "reauthentication_required") {
    headers.set("WWW-Authenticate", 'Bearer error="insufficient_user_authentication"');
  }
  return Response.json(body, { status: STATUS_BY_CODE[code], headers });
}

/**
 * The error with its chain of causes, which is where database drivers put the reason. Of a failed query only the SQL is
 * included and not its parameters, which can contain hashes, addresses and encrypted texts. An outage of the database is one
 * sentence, because a stack trace explains nothing of it.
 */
export function describeError(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const outage = describeOutage(thrown);
  if (outage !== undefined) return outage;
  const own =
    "query" in thrown && typeof thrown.query === "string"
      ? `${thrown.name}: failed query: ${thrown.query}`
      : (thrown.stack ?? `${thrown.name}: ${thrown.message}`);
  return thrown.cause === undefined ? own : `${own}\ncaused by ${describeError(thrown.cause)}`;
}
