/** Bounds that the relay, the agent and the API share, for tickets, datagrams, flows and TCP connections. */
import { MINUTE_MS, SECOND_MS } from "../../shared/time.ts";

// ── Tickets ──

export const RELAY_TICKET_SECONDS = 300;
/** How long an association outlives its ticket while the API can't be reached to renew it. */
export const RELAY_TICKET_GRACE_MS = 10 * MINUTE_MS;
/** Tolerated difference between the clocks of a relay and the API. */
export const RELAY_CLOCK_TOLERANCE_MS = 10 * SECOND_MS;
/**
 * How long after it was signed a ticket can be used at most. The tolerance counts twice: a relay accepts the ticket for that
 * much longer, and its clock may be that much behind.
 */
export const RELAY_TICKET_USABLE_MAX_MS =
  RELAY_TICKET_SECONDS * SECOND_MS + RELAY_TICKET_GRACE_MS + 2 * RELAY_CLOCK_TOLERANCE_MS;

// ── Datagrams (docs/protocols/relay-protocol.md) ──

/** type u8, flags u8, u16, flow u32 */
export const DATAGRAM_HEADER_BYTES = 8;
/** Truncated HMAC-SHA-256 (RFC 2104 §5: at least half of the hash). */
export const RELAY_MAC_BYTES = 16;
export const RELAY_HEARTBEAT_INTERVAL_MS = 5_000;
export const RELAY_HEARTBEAT_TIMEOUT_MS = 13_000;

// ── Flows: one for each remote WireGuard peer ──

export const FLOWS_PER_PORT_MAX = 4_096;
export const FLOW_IDLE_TIMEOUT_MS = 200_000;
/** Devices of a network whose traffic is counted: as many as can be connected at a time. */
export const DEVICES_PER_NETWORK_MAX = FLOWS_PER_PORT_MAX;

// ── TCP ──

/** Visitors that wait for a data connection of the agent. */
export const DATA_CONNECTION_BACKLOG_MAX = 1_024;
/** TCP keep-alive begins after this idle time, so that a dead peer is detected. */
export const DATA_CONNECTION_KEEP_ALIVE_MS = 15_000;

// ── The relay and the API ──

export const RELAY_STATUS_INTERVAL_MS = 2_000;
/** For a message of the link between a relay and the API. */
export const RELAY_LINK_MESSAGE_MAX_BYTES = 1024 * 1024;
