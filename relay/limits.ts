/** Bounds of the relay alone. Those shared with agents are in protocol/relay/limits.ts. */
import { RELAY_TICKET_GRACE_MS, RELAY_TICKET_SECONDS } from "../protocol/relay/limits.ts";
import { MINUTE_MS } from "../shared/time.ts";

// ── Control connections ──

/** A JSON or datagram message of an agent. A resume of 4,096 flows is about 700 KB. */
export const AGENT_MESSAGE_MAX_BYTES = 1024 * 1024;
/**
 * JSON messages of the agents of a port, in bytes. A resume of 4,096 flows takes 20 ms. The burst is five of them and the
 * devices of all their flows; the rate then costs the relay 1 ms a second.
 */
export const AGENT_MESSAGES_BURST_BYTES = 4 * 1024 * 1024;
export const AGENT_MESSAGES_BYTES_PER_SECOND = 32 * 1024;
/** What a message counts besides its bytes. */
export const AGENT_MESSAGE_OVERHEAD_BYTES = 256;
export const ASSOCIATIONS_MAX = 10_000;
/** Sockets of the relay's own TCP port: control and data connections. */
const AGENT_PORT_CONNECTIONS_MAX = 65_536;
/** Connections of visitors at the ports of all TCP tunnels together. */
const VISITORS_PER_RELAY_MAX = 65_536;
/** Files, pipes, and the relay's own ports. */
const OTHER_DESCRIPTORS = 256;

/**
 * A visitor needs two descriptors: its own, and that of the data connection, which no longer counts as one of the relay's own
 * port. A quarter remains for the ports of tunnels and networks.
 * @param descriptors how many files and connections the process may have open.
 */
export function getConnectionLimits(descriptors: number): { visitors: number; agents: number } {
  const quarter = Math.max(1, Math.floor((descriptors - OTHER_DESCRIPTORS) / 4));
  return {
    visitors: Math.min(VISITORS_PER_RELAY_MAX, quarter),
    agents: Math.min(AGENT_PORT_CONNECTIONS_MAX, quarter),
  };
}
/**
 * The kernel's backlog of one TCP port: this many half-open connections, beyond which Linux answers SYNs with cookies,
 * and this many that wait to be accepted. Enough for all visitors or agents that connect at once after a restart.
 * The default of Node.js is 511. Linux caps it at net.core.somaxconn.
 */
export const LISTEN_BACKLOG = 1_024;
/** Tickets that are verified at a time. */
export const PENDING_UPGRADES_MAX = 1_024;
/** An agent that does not read its JSON messages is disconnected beyond this. */
export const CONTROL_BACKLOG_MAX_BYTES = 4 * 1024 * 1024;
/** Tolerated difference between clocks. */
export const TICKET_CLOCK_TOLERANCE_MS = 10_000;
/** How long an agent whose ticket expired while the API was unreachable may take to bring a new one. */
export const TICKET_RENEWAL_MAX_MS = 30_000;
/** How long a ticket can be used after it was signed: its lifetime, the grace period and clock differences. */
export const TICKET_LIFETIME_MAX_MS = RELAY_TICKET_SECONDS * 2_000 + RELAY_TICKET_GRACE_MS;
export const ASSOCIATION_SWEEP_INTERVAL_MS = 1_000;
/** How long the close messages to agents may take when the relay stops. */
export const STOP_MAX_MS = 2_000;

// ── Keys of the API ──

export const JWKS_FETCH_MAX_MS = 5_000;
export const JWKS_MAX_BYTES = 256 * 1024;
/** Keys are fetched again after this, so that a withdrawn key becomes invalid. */
export const JWKS_MAX_AGE_MS = 10 * MINUTE_MS;
/** At most one fetch in this time, whatever key ids tickets name. */
export const JWKS_REFETCH_MIN_MS = 2_000;
/** The same while there are no keys at all. */
export const JWKS_FIRST_FETCH_MIN_MS = 250;

// ── The link to the API ──

export const LINK_RETRY_MIN_MS = 250;
export const LINK_RETRY_MAX_MS = 10_000;
export const LINK_WELCOME_MAX_MS = 10_000;
/** A status message is split by networks beyond this. */
export const LINK_STATUS_MAX_BYTES = 256 * 1024;
/** A live network is reported at least this often, so that "last seen" does not grow old. */
export const NETWORK_STATUS_MAX_AGE_MS = 30_000;
/** How long the last totals of an ended association are reported again after a new hello. */
export const ENDED_USAGE_RETENTION_MS = 10 * MINUTE_MS;
export const ENDED_USAGE_MAX = 10_000;
export const REVOCATIONS_MAX = 10_000;
export const ALLOWLIST_UPDATES_MAX = 10_000;

// ── UDP ──

export const UDP_BUFFER_BYTES = 4 * 1024 * 1024;
/** Node.js queues datagrams that the kernel does not accept: beyond this they are dropped. */
export const UDP_SEND_QUEUE_MAX_BYTES = 1024 * 1024;
/** Without a BIND for this long, three are missing, and datagrams are sent over the WebSocket. */
export const BINDING_MAX_AGE_MS = 50_000;
/** For this long, datagrams of a new flow are sent over the WebSocket, after the message that announces the flow. */
export const FLOW_ANNOUNCEMENT_MS = 1_000;
export const FLOW_SWEEP_INTERVAL_MS = 5_000;
/** For a peer that started a handshake but has not shown that it receives our responses. */
export const UNCONFIRMED_FLOW_IDLE_MAX_MS = 30_000;
/** First handshake messages from one address (IPv6: /64) at a port: WireGuard itself sends one each 5 s. */
export const INITIATIONS_PER_SECOND = 10;
export const INITIATIONS_BURST = 20;
export const INITIATION_SOURCES_MAX = 4_096;
/**
 * First handshake messages at a port that are read beyond those of their address, because junk can have the address of any
 * device: a mac1 takes about 10 µs to verify, so this is 2 % of a core.
 */
export const UNVERIFIED_INITIATIONS_PER_SECOND = 2_000;
export const UNVERIFIED_INITIATIONS_BURST = 2_000;
export const NEW_FLOWS_PER_SECOND = 20;
export const NEW_FLOWS_BURST = 200;
/** Data of peers that may have no session, for all peers of a port together. */
export const UNPROVEN_DATA_PER_SECOND = 500;
export const UNPROVEN_DATA_BURST = 1_000;
/** How long a receiver index of the server lets a peer move to another address. */
export const RECEIVER_INDEX_MAX_AGE_MS = 240_000;
export const RECEIVER_INDICES_PER_PORT_MAX = 65_536;
/** The burst beyond the rate: 100 ms of the rate, and never less than the bytes below. */
export const RATE_BURST_MS = 100;
export const RATE_BURST_MIN_BYTES = 256 * 1024;
export const DEVICES_PER_NETWORK_MAX = 4_096;
/** Networks whose counters outlive their association. */
export const NETWORK_RECORDS_MAX = 10_000;
