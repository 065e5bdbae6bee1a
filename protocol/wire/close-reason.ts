/**
 * The reason of a Close: the name of its code, a sentence for a person and, where the code alone does not say what the user can
 * do, a subcode: `duplicate_name: port 40001 is taken [port_taken]`. A side that does not know subcodes shows it with the
 * sentence.
 */
import { toUtf8 } from "../../shared/bytes.ts";
import { CLOSE_REASON_MAX_BYTES } from "../limits.ts";
import { findCloseName, type CloseName } from "./close-codes.ts";

export type CloseSubcode =
  // duplicate_name
  /** The name is reserved for the service, or belongs to another organization or project. */
  | "name_unavailable"
  /** Another tunnel has the public port. */
  | "port_taken"
  /** The public port is that of a tunnel that the sentence names, and that the token may serve. */
  | "port_of_own_tunnel"
  | "pool_serves"
  // quota_exceeded
  | "pool_full"
  /** The organization has as many tunnels as it can have. */
  | "tunnel_limit"
  /** The organization has made as many changes as it can make in a day. */
  | "daily_limit"
  /** The organization has its share of the relay's ports. */
  | "port_limit"
  // invalid_request
  | "port_out_of_range"
  /** The tunnel carries HTTP and not TCP, or the reverse. */
  | "wrong_protocol"
  // forbidden
  /** The token is confined to other names. */
  | "name_not_allowed"
  | "project_not_found"
  | "organization_not_approved"
  /** The tunnel's IP allowlist does not include the address of the client. */
  | "address_not_allowed"
  // unsupported_version
  | "agent_too_old";

export interface CloseExplanation {
  message: string;
  subcode?: CloseSubcode | undefined;
}

/** Why a connection is not accepted. */
export interface CloseRefusal extends CloseExplanation {
  refusal: CloseName;
}

/** A sentence that is too long is cut, and the subcode is not. */
export function formatCloseReason(
  name: CloseName,
  message: string,
  subcode?: CloseSubcode,
): string {
  const tail = subcode === undefined ? "" : ` [${subcode}]`;
  return truncateUtf8(`${name}: ${message}`, CLOSE_REASON_MAX_BYTES - tail.length) + tail;
}

export interface ParsedCloseReason {
  message: string;
  /** undefined without one. One that is not a `CloseSubcode` is of a newer server. */
  subcode?: string | undefined;
}

export function parseCloseReason(code: number, reason: string): ParsedCloseReason {
  const name = findCloseName(code);
  if (name === null) return { message: reason, subcode: undefined };
  const prefix = `${name}: `;
  const text = reason.startsWith(prefix) ? reason.slice(prefix.length) : reason;
  const tail = / \[([a-z_]+)\]$/.exec(text);
  return { message: text.slice(0, tail?.index), subcode: tail?.[1] };
}

function truncateUtf8(text: string, maxBytes: number): string {
  const bytes = toUtf8(text);
  if (bytes.byteLength <= maxBytes) return text;
  // A character that was cut decodes to U+FFFD, which has three bytes: drop it.
  return new TextDecoder().decode(bytes.subarray(0, maxBytes)).replace(/\uFFFD+$/, "");
}
