/**
 * The heads of requests and responses as they pass through: which headers are forwarded, which are hop-by-hop
 * (RFC 9110 §7.6.1), and which this service sets.
 */
import { ACKNOWLEDGED_HEADER } from "../../../protocol/front-proxy/acknowledgements.ts";
import { ERROR_HEADER, REQUEST_ID_HEADER } from "../../../protocol/errors.ts";
import { RESPONSE_HEAD_MAX_BYTES, RESPONSE_HEADERS_MAX } from "../../../protocol/limits.ts";
import { FLAG } from "../../../protocol/wire/frames.ts";
import { getRequestTarget } from "../../../protocol/request-target.ts";
import {
  isForwarded,
  toPlainName,
  WEBSOCKET_HANDSHAKE_HEADERS,
} from "../../../protocol/header-names.ts";
import { parseHost } from "../../../protocol/hosts.ts";
import type { PublicAddress } from "../../../protocol/public-address.ts";
import { containsAccessToken } from "../../../access/access-tokens.ts";
import { EDGE_VERDICT_HEADER } from "../../../access/edge-verdict.ts";
import {
  isVisitorCookie,
  removeVisitorCookies,
} from "../../../access/authenticators/visitor-cookies.ts";
import { GATES_HEADER } from "../../../access/gates.ts";
import type { HeadRewrite } from "../../../access/policy-actions.ts";
import type { Refusal } from "../../../access/refusal.ts";
import { headerPairs } from "../../../shared/raw-headers.ts";
import { SILENT_TRUNCATION_HEADER, UNTOUCHED_ENCODING_HEADER } from "./silent-truncation.ts";

/** More than the headers have that this service adds. */
const ADDED_MAX_CHARS = 512;

export interface RequestHead {
  /** Method, target, then alternating header names and values. */
  parts: string[];
  /** How many characters the parts have together, at most. */
  chars: number;
  flags: number;
  isWebSocket: boolean;
  isHeadMethod: boolean;
  /** The value of `EDGE_VERDICT_HEADER`. Not trusted yet: a visitor may have sent it. */
  edgeVerdict: string | null;
  /** The visitor sent an access token of the API, which is not in `parts`. */
  hasAccessToken: boolean;
}

/**
 * One pass over the headers: each call into the platform's request object costs as much as the rest of this.
 * @param visitorAddress for `X-Forwarded-For`. Empty when it is unknown.
 */
export function buildRequestHead(
  request: Request,
  visitorAddress: string,
  publicAddress: PublicAddress,
): RequestHead {
  const { method, url } = request;
  const parts = [method, getRequestTarget(url)];
  let chars = method.length + url.length + ADDED_MAX_CHARS;
  let connection = "";
  let host = "";
  let edgeVerdict: string | null = null;
  let isWebSocket = false;
  let hasAccessToken = false;
  request.headers.forEach((value, name) => {
    if (name === "host") host = value;
    else if (name === "connection") connection = value.toLowerCase();
    else if (name === "upgrade")
      isWebSocket = method === "GET" && value.toLowerCase() === "websocket";
    else if (name === EDGE_VERDICT_HEADER) edgeVerdict = value;
    else if (name === "authorization" && containsAccessToken(value, publicAddress.apiOrigin)) {
      hasAccessToken = true;
      return;
    }
    const forwardedValue = name === "cookie" ? removeVisitorCookies(value) : value;
    if (forwardedValue === null || !isForwarded(name)) return;
    parts.push(name, forwardedValue);
    chars += name.length + forwardedValue.length;
  });
  if (isWebSocket) removeHeaders(parts, WEBSOCKET_HANDSHAKE_HEADERS);
  if (connection !== "" && connection !== "keep-alive" && connection !== "close") {
    const named = new Set(connection.split(",").map((name) => toPlainName(name.trim())));
    // Not hop-by-hop: if a visitor could remove it, the local server would see no host name.
    named.delete("host");
    removeHeaders(parts, named);
  }
  if (visitorAddress !== "") parts.push("x-forwarded-for", visitorAddress);
  parts.push("x-forwarded-proto", publicAddress.scheme);
  const publicHost = toPublicHost(host, publicAddress);
  if (publicHost !== null) parts.push("x-forwarded-host", publicHost);
  const end = request.body === null ? FLAG.end : 0;
  const flags = isWebSocket ? FLAG.socket : end;
  return {
    parts,
    chars,
    flags,
    isWebSocket,
    isHeadMethod: method === "HEAD",
    edgeVerdict,
    hasAccessToken,
  };
}

/**
 * The host as the service writes it in its URLs. Links that a local server makes of it must not lead to a port that the
 * visitor invented.
 */
function toPublicHost(authority: string, { portSuffix }: PublicAddress): string | null {
  const host = parseHost(authority);
  if (host === null) return null;
  return portSuffix !== "" && authority.endsWith(portSuffix) ? host + portSuffix : host;
}

export function removeFromHead({ parts }: RequestHead, { remove }: HeadRewrite): void {
  if (remove.size > 0) removeHeaders(parts, remove);
}

/**
 * What a header costs in the platform and here besides its characters: without it, the many empty headers of a small head would
 * be free.
 */
const HEADER_OVERHEAD_BYTES = 512;

/** The response to a visitor when the head of the local server's response is too large. */
export const LARGE_HEAD_REFUSAL: Refusal = {
  code: "origin_failed",
  message: `The local server's response has more than ${RESPONSE_HEADERS_MAX} headers, or more than ${RESPONSE_HEAD_MAX_BYTES / 1024} KiB of them.`,
};

/** About how many bytes a request's head takes in memory. */
export function countHeadBytes({ parts, chars }: RequestHead): number {
  return (parts.length / 2) * HEADER_OVERHEAD_BYTES + chars;
}

/** The same for a response's head. @param payload of its frame, which is about as long as its texts. */
export function countResponseHeadBytes(payload: Uint8Array, pairs: string[]): number {
  return (pairs.length / 2) * HEADER_OVERHEAD_BYTES + payload.byteLength;
}

/** Removes headers, then sets others, which replace those of the visitor. */
export function rewriteHead(head: RequestHead, rewrite: HeadRewrite): void {
  const { parts } = head;
  const { set } = rewrite;
  removeFromHead(head, rewrite);
  if (set.size > 0) removeHeaders(parts, set);
  for (const { name, value } of set.values()) parts.push(name, value);
}

/**
 * In one pass, because a visitor can name as many headers as fit into a head.
 * @param names plain.
 */
function removeHeaders(parts: string[], names: { has(name: string): boolean }): void {
  let kept = 2;
  for (let i = 2; i < parts.length; i += 2) {
    if (names.has(toPlainName(parts[i]!))) continue;
    parts[kept] = parts[i]!;
    parts[kept + 1] = parts[i + 1]!;
    kept += 2;
  }
  parts.length = kept;
}

/** Headers that a local server cannot set: the edge would act on them. It can't set the cookies of visitors who sign in either. */
const RESERVED_NAMES: ReadonlySet<string> = new Set([
  ACKNOWLEDGED_HEADER,
  ERROR_HEADER,
  GATES_HEADER,
  REQUEST_ID_HEADER,
  SILENT_TRUNCATION_HEADER,
  UNTOUCHED_ENCODING_HEADER,
]);

/** Names, in lower case, and values. An array, because each object of the platform burdens the garbage collector. */
export type ResponseHeaders = [name: string, value: string][];

/**
 * The headers that a visitor receives. They may not be valid: the platform throws a TypeError when it takes them.
 * @throws TypeError for an empty name, which the platform would send.
 */
export function buildResponseHeaders(pairs: string[], requestId: string): ResponseHeaders {
  const headers: ResponseHeaders = [];
  for (const [name, value] of headerPairs(pairs)) {
    if (name === "") throw new TypeError("a header has no name");
    const lower = name.toLowerCase();
    const isReserved =
      RESERVED_NAMES.has(lower) || (lower === "set-cookie" && isVisitorCookie(value));
    if (!isReserved) headers.push([lower, value]);
  }
  headers.push([REQUEST_ID_HEADER, requestId]);
  return headers;
}

/** Responses with these statuses have no body, whatever their headers say (RFC 9110 §6.4.1). */
export function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/** @returns null when the header is absent, repeated or malformed. */
export function parseContentLength(headers: ResponseHeaders): number | null {
  const [length, ...others] = headers.filter(([name]) => name === "content-length");
  if (length === undefined || others.length > 0) return null;
  const value = length[1].trim();
  return /^\d{1,15}$/.test(value) ? Number(value) : null;
}
