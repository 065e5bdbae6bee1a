/** The bounds of what a visitor can hold in the front proxy, each with its unit in its name. */
import { WEBSOCKET_MESSAGE_MAX_BYTES } from "../../protocol/limits.ts";
import { MINUTE_MS } from "../../shared/time.ts";

/**
 * How long a visitor that sends the body of its request only when invited (RFC 9110 §10.1.1) waits for the response,
 * which may make the body unnecessary. Most clients send it uninvited after a second, and some never do.
 */
export const CONTINUE_AFTER_MS = 100;
/** How long a connection may take to send its first request. */
export const FIRST_HEAD_MAX_MS = 10_000;
/**
 * How long a connection may take from the end of a response to the next complete request. Node.js's client gives up
 * after 4 s.
 */
export const IDLE_MAX_MS = 15_000;
/**
 * The same for the connections of the operator's own proxy: longer than nginx (60 s), Traefik (90 s) and Caddy (120 s)
 * keep them.
 */
export const PROXY_IDLE_MAX_MS = 150_000;
/** Sooner than workerd, which closes idle connections after 5 s: a request could cross that. Checked once a second. */
export const UPSTREAM_IDLE_MAX_MS = 3_000;
/** A request's body may pause for this long. */
export const BODY_PAUSE_MAX_MS = MINUTE_MS;
/**
 * When a request was answered without its body being read, workerd reads up to this much of it. If there is more, it closes the
 * connection, and the next request would be lost with it.
 */
export const DISCARDED_BODY_MAX_BYTES = 64 * 1024;
/** How long a visitor may leave sent bytes unread. */
export const UNREAD_MAX_MS = 5 * MINUTE_MS;
/**
 * How long a visitor's bytes may be held while nothing else arrives: those sent ahead of the response, or those of an upload that
 * the local server has answered without reading it. The visitor is not read from meanwhile, so its departure is not noticed.
 */
export const HELD_MAX_MS = 5 * MINUTE_MS;
/** The same as `UNREAD_MAX_MS` for agents and other programs: their heartbeats arrive more often. */
export const PROGRAM_UNREAD_MAX_MS = MINUTE_MS;
/**
 * The other end of a WebSocket that has read nothing for this long is not read from either: it would cause answers without
 * end. A visitor may have a slow network, but is already megabytes behind: the kernel's buffer for it is full.
 */
export const STALLED_MS = { program: 250, visitor: 2_000 };
/**
 * After the server has answered and closed, a visitor that is still sending reads the answer only if its bytes are
 * accepted meanwhile: a closed connection would answer them with a reset, which discards the answer (RFC 9112 §9.6).
 */
export const LINGER_MAX_MS = MINUTE_MS;
/** The visitor may pause for this long while it is still sending. */
export const LINGER_PAUSE_MAX_MS = 3_000;
/** Incomplete heads of all connections together. */
export const INCOMPLETE_HEADS_MAX_BYTES = 16 * 1024 * 1024;
/** Heads of requests that wait for their turn. One source may hold half. */
export const QUEUED_HEADS_MAX_BYTES = 16 * 1024 * 1024;
/**
 * Bodies of HTTP/2 requests that wait to be forwarded. One source may hold half, which is more than all requests of a session
 * can send.
 */
export const UNREAD_BODIES_MAX_BYTES = 128 * 1024 * 1024;
/** How long a request may wait for its turn. */
export const QUEUED_MAX_MS = 10_000;
/** Incomplete WebSocket messages of visitors. One source may hold half, which is the largest message. */
export const VISITOR_MESSAGES_MAX_BYTES = 2 * WEBSOCKET_MESSAGE_MAX_BYTES;
/** Incomplete WebSocket messages of agents and other programs. Those of an agent have at most 1 MiB. */
export const PROGRAM_MESSAGES_MAX_BYTES = 128 * 1024 * 1024;
/** workerd stores tens of bytes for each frame of an incomplete message, even if the frame is empty. */
export const FRAME_MIN_BYTES = 64;

/** The most connections that are useful on one machine. */
const CONNECTIONS_MAX = 16_384;
/** One source may use this part of all connections. */
const SOURCE_PART = 1 / 8;
const SOURCE_CONNECTIONS_MIN = 64;
/** Files, pipes and listeners of a process besides visitors' connections. */
const OTHER_DESCRIPTORS = 512;
/** A visitor's connection needs two descriptors in the front proxy, and as many remain for objects in workerd. */
const DESCRIPTORS_PER_CONNECTION = 4;

/** A server with fewer descriptors could serve hardly any visitors. */
export const DESCRIPTORS_MIN = 1_024;

export interface ConnectionLimits {
  /** All connections together. */
  total: number;
  /** The connections of one IPv4 address or one IPv6 /64. */
  perSource: number;
}

/**
 * @param descriptors how many files and connections one process may have open.
 * @param overrides limits that the operator has set.
 */
export function getConnectionLimits(
  descriptors: number,
  overrides: Partial<ConnectionLimits>,
): ConnectionLimits {
  const affordable = Math.floor((descriptors - OTHER_DESCRIPTORS) / DESCRIPTORS_PER_CONNECTION);
  const total = overrides.total ?? Math.min(CONNECTIONS_MAX, affordable);
  const share = Math.max(SOURCE_CONNECTIONS_MIN, Math.floor(total * SOURCE_PART));
  return { total, perSource: overrides.perSource ?? share };
}
