/** The responses that the front proxy itself gives. Each of them ends its connection. */
import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import {
  ERROR_HEADER,
  REQUEST_ID_HEADER,
  STATUS_BY_CODE,
  type ErrorCode,
} from "../../protocol/errors.ts";
import type { ErrorBody } from "../../protocol/schemas/error-body.ts";
import { HEAD_MAX_BYTES, type InvalidHead } from "./request-head.ts";

export interface Refusal {
  code: ErrorCode;
  message: string;
  /** Instead of the usual status of the code. */
  status?: number;
  retryAfterSeconds?: number;
}

export const INVALID_HEADS: Record<InvalidHead, Refusal> = {
  malformed: { code: "invalid_request", message: "The request is not valid HTTP/1.1." },
  invalid_host: {
    code: "invalid_host",
    message: "The request must have exactly one Host header, with a valid name or address.",
  },
  unsupported_encoding: {
    code: "invalid_request",
    message: "The only supported Transfer-Encoding is chunked.",
    status: 501,
  },
  connect: { code: "method_not_allowed", message: "This server does not support CONNECT." },
};

export const HEAD_TOO_LARGE: Refusal = {
  code: "invalid_request",
  message: `The request line and the headers together must have at most ${HEAD_MAX_BYTES} bytes.`,
  status: 431,
};

export const TOO_SLOW: Refusal = {
  code: "invalid_request",
  message: "The request did not arrive in time.",
  status: 408,
};

export const UNAVAILABLE: Refusal = {
  code: "unavailable",
  message: "The server is restarting. Try again in a moment.",
  retryAfterSeconds: 1,
};

export const TOO_MANY_CONNECTIONS: Refusal = {
  code: "unavailable",
  message: "There are too many open connections. Try again later.",
  retryAfterSeconds: 10,
};

/** @returns the text of a whole HTTP response. */
export function formatRefusal(refusal: Refusal): string {
  const { code, message, retryAfterSeconds, status = STATUS_BY_CODE[code] } = refusal;
  const body: ErrorBody = { error: code, message };
  if (retryAfterSeconds !== undefined) body.retry_after_seconds = retryAfterSeconds;
  const text = JSON.stringify(body);
  const fields = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(text)}`,
    "cache-control: no-store",
    "connection: close",
    `${ERROR_HEADER}: ${code}`,
    `${REQUEST_ID_HEADER}: ${randomUUID()}`,
    ...(retryAfterSeconds === undefined ? [] : [`retry-after: ${retryAfterSeconds}`]),
  ];
  return `${fields.join("\r\n")}\r\n\r\n${text}`;
}
