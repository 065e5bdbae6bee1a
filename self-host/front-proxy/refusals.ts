/** The responses that the front proxy itself gives. Each of them ends its connection. */
import { randomUUID } from "node:crypto";
import {
  ERROR_HEADER,
  getDefaultFields,
  REQUEST_ID_HEADER,
  STATUS_BY_CODE,
  type ErrorCode,
} from "../../protocol/errors.ts";
import type { ErrorBody } from "../../protocol/schemas/error-body.ts";
import {
  HEAD_MAX_BYTES,
  HEAD_MAX_FIELDS,
  QUERY_MAX_PARAMETERS,
  WEBSOCKET_VERSION,
  type InvalidHead,
} from "./http1/request-head.ts";
import { STATUS_CODES } from "../../sockets/node-http.ts";

/** Why the front proxy refuses a request: the values of a label of its metrics. */
export const REFUSAL_REASONS = [
  "malformed",
  "invalid_host",
  "unsupported_encoding",
  "connect",
  "unknown_method",
  "unsupported_websocket_version",
  "head_too_large",
  "too_slow",
  "unavailable",
  "overloaded",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

interface RefusalResponse {
  code: ErrorCode;
  message: string;
  /** Instead of the usual status of the code. */
  status?: number;
  retryAfterSeconds?: number;
  /** Further header fields, such as those that say what is supported instead. */
  headers?: Readonly<Record<string, string>>;
}

/** The refusal of a request. */
export interface Refusal extends RefusalResponse {
  reason: RefusalReason;
}

const COMMON_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

export const INVALID_HEADS: Record<InvalidHead, Refusal> = {
  malformed: {
    reason: "malformed",
    code: "invalid_request",
    message: "The request is not valid HTTP/1.1.",
  },
  too_many_fields: {
    reason: "head_too_large",
    code: "invalid_request",
    message: `The request must have at most ${HEAD_MAX_FIELDS} header fields.`,
    status: 431,
  },
  too_many_parameters: {
    reason: "head_too_large",
    code: "invalid_request",
    message: `The query must have at most ${QUERY_MAX_PARAMETERS} parameters.`,
    status: 414,
  },
  invalid_host: {
    reason: "invalid_host",
    code: "invalid_host",
    message: "The request must have exactly one Host header, with a valid name or address.",
  },
  unsupported_encoding: {
    reason: "unsupported_encoding",
    code: "invalid_request",
    message: "The only supported Transfer-Encoding is chunked.",
    status: 501,
  },
  connect: {
    reason: "connect",
    code: "method_not_allowed",
    message: "This server does not support CONNECT.",
    headers: { allow: COMMON_METHODS },
  },
  unknown_method: {
    reason: "unknown_method",
    code: "method_not_allowed",
    message: "This server does not support the method. Names of methods have upper-case letters.",
    headers: { allow: COMMON_METHODS },
  },
  invalid_handshake: {
    reason: "malformed",
    code: "invalid_request",
    message:
      "A WebSocket handshake must have one Sec-WebSocket-Version, and one Sec-WebSocket-Key of 16 bytes in base64.",
  },
  unsupported_websocket_version: {
    reason: "unsupported_websocket_version",
    code: "invalid_request",
    message: `The only supported version of the WebSocket protocol is ${WEBSOCKET_VERSION}.`,
    status: 426,
    // RFC 6455 §4.4, and RFC 9110 §15.5.22.
    headers: {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": WEBSOCKET_VERSION,
    },
  },
};

export const HEAD_TOO_LARGE: Refusal = {
  reason: "head_too_large",
  code: "invalid_request",
  message: `The request line and the headers together must have at most ${HEAD_MAX_BYTES} bytes.`,
  status: 431,
};

export const TOO_SLOW: Refusal = {
  reason: "too_slow",
  code: "invalid_request",
  message: "The request did not arrive in time.",
  status: 408,
};

export const UNAVAILABLE: Refusal = {
  reason: "unavailable",
  code: "unavailable",
  message: "The server is restarting. Try again in a moment.",
  retryAfterSeconds: 1,
};

export const OVERLOADED: Refusal = {
  reason: "overloaded",
  code: "unavailable",
  message: "The server has too many requests. Try again in a moment.",
  retryAfterSeconds: 10,
};

/** The request waited for its turn: there are too many others, or workerd hangs. */
export const NO_ANSWER: Refusal = {
  ...OVERLOADED,
  message: "The server does not answer now. Try again in a moment.",
};

export const TOO_MANY_CONNECTIONS: RefusalResponse = {
  code: "unavailable",
  message: "There are too many open connections. Try again later.",
  retryAfterSeconds: 10,
};

export function getRefusalStatus({ code, status = STATUS_BY_CODE[code] }: RefusalResponse): number {
  return status;
}

/**
 * @param isForHead whether it answers a HEAD request, and so has no body: some clients fail at bytes after the head.
 * @returns the text of a whole HTTP response.
 */
export function formatRefusal(refusal: RefusalResponse, isForHead = false): string {
  const { code, message, retryAfterSeconds, headers = {} } = refusal;
  const status = getRefusalStatus(refusal);
  const body: ErrorBody = { error: code, message, fields: getDefaultFields(code) };
  if (retryAfterSeconds !== undefined) body.retry_after_seconds = retryAfterSeconds;
  const text = JSON.stringify(body);
  const fields = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(text)}`,
    "cache-control: no-store",
    "x-content-type-options: nosniff",
    "connection: close",
    `${ERROR_HEADER}: ${code}`,
    `${REQUEST_ID_HEADER}: ${randomUUID()}`,
    ...(retryAfterSeconds === undefined ? [] : [`retry-after: ${retryAfterSeconds}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return `${fields.join("\r\n")}\r\n\r\n${isForHead ? "" : text}`;
}
