/** The headers of responses, by their names, and which errors have which. */
import { ERROR_HEADER, REQUEST_ID_HEADER, type ErrorCode } from "../../../protocol/errors.ts";

const text = { type: "string" } as const;

export const RESPONSE_HEADERS = {
  [REQUEST_ID_HEADER]: {
    required: true,
    description: "Identifies the request in the service's log.",
    schema: { type: "string", format: "uuid" },
  },
  [ERROR_HEADER]: { required: true, description: "The error code of the body.", schema: text },
  "Cache-Control": {
    required: true,
    description: "`no-store` unless the response may be cached.",
    schema: text,
  },
  "X-Content-Type-Options": { required: true, description: "Always `nosniff`.", schema: text },
  "Strict-Transport-Security": {
    description: "Only where the service is reached by https.",
    schema: text,
  },
  "Retry-After": {
    description: "Seconds after which the request may be repeated.",
    schema: { type: "integer", minimum: 0 },
  },
  // Empty, and so left out by some HTTP servers, where no method is supported.
  Allow: { description: "The methods that the path supports.", schema: text },
  "WWW-Authenticate": {
    required: true,
    description: "The required authentication scheme.",
    schema: text,
  },
  Upgrade: { description: "The protocol that the path requires.", schema: text },
  Location: { required: true, description: "Where the browser is redirected to.", schema: text },
  "Set-Cookie": { description: "Sets, replaces or clears a cookie.", schema: text },
  "Content-Disposition": { description: "The name of the file.", schema: text },
  "Content-Security-Policy": { description: "What the page may load.", schema: text },
  "Cross-Origin-Opener-Policy": { description: "Isolates the page from others.", schema: text },
  "Referrer-Policy": { description: "Which links reveal the URL of the page.", schema: text },
  Date: { description: "The time of the service.", schema: text },
  Vary: { description: "The request headers that the response depends on.", schema: text },
  "Sec-WebSocket-Protocol": { description: "The subprotocol that was chosen.", schema: text },
} as const;

export type ResponseHeader = keyof typeof RESPONSE_HEADERS;

/** Every response that is not a WebSocket has these. */
export const COMMON_HEADERS: readonly ResponseHeader[] = [
  REQUEST_ID_HEADER,
  "Cache-Control",
  "X-Content-Type-Options",
  "Strict-Transport-Security",
];

const ERROR_HEADERS: Partial<Record<ErrorCode, ResponseHeader>> = {
  unauthorized: "WWW-Authenticate",
  reauthentication_required: "WWW-Authenticate",
  method_not_allowed: "Allow",
  upgrade_expected: "Upgrade",
  slow_down: "Retry-After",
  rate_limited: "Retry-After",
  unavailable: "Retry-After",
};

export function listErrorHeaders(codes: readonly ErrorCode[]): ResponseHeader[] {
  return [ERROR_HEADER, ...codes.flatMap((code) => ERROR_HEADERS[code] ?? [])];
}

export function referToHeaders(names: readonly ResponseHeader[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
