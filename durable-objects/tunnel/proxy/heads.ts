/**
 * Heads of requests and answers on their way through: which header lines pass, which are the hop's own
 * (RFC 9110 §7.6.1), and which are ours to say.
 */
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import { FLAG } from "../../../protocol/wire/frames.ts";
import { getRequestTarget } from "../../../protocol/request-target.ts";
import { isPassedOn, SOCKET_HANDSHAKE } from "../../../protocol/header-names.ts";
import { JUDGED_HEADER } from "../../../access/refusal.ts";
import { setsPass, withoutPass } from "../../../access/pass-cookie.ts";
import { GATES_HEADER } from "../../../access/settings.ts";

export interface RequestHead {
  /** Method, target, then header names and values in turn. */
  parts: string[];
  flags: number;
  isSocket: boolean;
  isHead: boolean;
  /** What a line that the edge writes says: how it judged. A visitor may have sent it as well. */
  judged: string | null;
}

/**
 * @param forwarded what we say of the visitor: address, scheme.
 * One pass over the lines: each look at a request from outside costs as much as the rest of this.
 */
export function requestHead(
  request: Request,
  forwarded: { address: string; proto: string },
): RequestHead {
  const { method, url } = request;
  const parts = [method, getRequestTarget(url)];
  let connection = "";
  let host = "";
  let judged: string | null = null;
  let isSocket = false;
  request.headers.forEach((value, name) => {
    if (name === "host") host = value;
    else if (name === "connection") connection = value.toLowerCase();
    else if (name === "upgrade") isSocket = method === "GET" && value.toLowerCase() === "websocket";
    else if (name === JUDGED_HEADER) judged = value;
    const passed = name === "cookie" ? withoutPass(value) : value;
    if (passed !== null && isPassedOn(name)) parts.push(name, passed);
  });
  if (isSocket) dropNamed(parts, SOCKET_HANDSHAKE);
  if (connection !== "" && connection !== "keep-alive" && connection !== "close") {
    const named = new Set(connection.split(",").map((name) => name.trim()));
    // Not the hop's: without it the visitor would choose what the local server takes itself for.
    named.delete("host");
    dropNamed(parts, named);
  }
  if (forwarded.address !== "") parts.push("x-forwarded-for", forwarded.address);
  parts.push("x-forwarded-proto", forwarded.proto);
  if (host !== "") parts.push("x-forwarded-host", host);
  const end = request.body === null ? FLAG.end : 0;
  const flags = isSocket ? FLAG.socket : end;
  return { parts, flags, isSocket, isHead: method === "HEAD", judged };
}

/** Drops some lines, then sets others, over what the visitor said. Names are in lower case. */
export function rewriteHead(
  { parts }: RequestHead,
  drop: ReadonlySet<string>,
  set: ReadonlyMap<string, string>,
): void {
  if (drop.size > 0) dropNamed(parts, drop);
  if (set.size > 0) dropNamed(parts, set);
  for (const [name, value] of set) parts.push(name, value);
}

function dropNamed(parts: string[], names: { has(name: string): boolean }): void {
  for (let i = parts.length - 2; i >= 2; i -= 2) if (names.has(parts[i]!)) parts.splice(i, 2);
}

/**
 * What a local server can't set: it would pass for a failure of ours, or for gates of the tunnel. Nor can it
 * set the cookie of visitors' passes.
 */
const OURS: ReadonlySet<string> = new Set([ERROR_HEADER, GATES_HEADER]);

/** @throws TypeError when a name or value is no header line. */
export function responseHeaders(pairs: string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i < pairs.length; i += 2) {
    const name = pairs[i]!.toLowerCase();
    const isOurs = OURS.has(name) || (name === "set-cookie" && setsPass(pairs[i + 1]!));
    if (!isOurs) headers.append(pairs[i]!, pairs[i + 1]!);
  }
  return headers;
}

/** These have no body, whatever the head says of one (RFC 9110 §6.4.1). */
export function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/** @returns the announced length, or null where none or more than one is. */
export function contentLengthOf(headers: Headers): number | null {
  const value = headers.get("content-length");
  return value !== null && /^\d{1,15}$/.test(value) ? Number(value) : null;
}
