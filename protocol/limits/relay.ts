/** Bounds that the relay, the agent and the API share: of tickets, datagrams, flows and TCP connections. */

// ── Tickets ──

export const RELAY_TICKET_SECONDS = 300;
/** An agent asks for the next ticket when this part of the current one's lifetime has passed. */
export const RELAY_TICKET_RENEW_AFTER = 0.5;
/** How long an association outlives its ticket while the API can't be reached to renew it. */
export const RELAY_TICKET_GRACE_MS = 10 * 60_000;

// ── Ports ──

/** How long a port that was released is kept from other organizations. */
export const RELAY_PORT_COOL_DOWN_MS = 24 * 3600_000;

// ── Datagrams (docs/relay-protocol.md) ──

/** type u8, flags u8, u16, flow u32 */
export const DATAGRAM_HEADER_BYTES = 8;
/** The largest payload of UDP over IPv4 (RFC 768: 65,535 less the IPv4 and UDP headers), less our header. */
export const DATAGRAM_PAYLOAD_MAX_BYTES = 65_507 - DATAGRAM_HEADER_BYTES;
/** BIND is padded to this, and BOUND is never longer: the relay amplifies nothing. */
export const BIND_BYTES = 64;
/** Truncated HMAC-SHA-256 (RFC 2104 §5: at least half of the hash). */
export const RELAY_MAC_BYTES = 16;
export const BIND_INTERVAL_MS = 15_000;
/** A BIND that was not answered is repeated after this, with the next counter. */
export const BIND_RETRY_MS = 300;
/** At the start the agent waits this long for a first BOUND before it uses the WebSocket. */
export const BIND_START_MAX_MS = 1_000;
/** So many BINDs in a row without an answer, and datagrams go over the WebSocket. */
export const BIND_MISSES_MAX = 3;
/** How often UDP is tried again while the WebSocket is used. */
export const UDP_PROBE_INTERVAL_MS = 30_000;
/** More than this waiting on the WebSocket, and datagrams are dropped: they would arrive too late anyway. */
export const WEBSOCKET_DATAGRAM_QUEUE_MAX_MS = 50;
/** The same in bytes, where the rate is not known yet. */
export const WEBSOCKET_DATAGRAM_QUEUE_MIN_BYTES = 64 * 1024;
export const RELAY_HEARTBEAT_INTERVAL_MS = 5_000;
export const RELAY_HEARTBEAT_TIMEOUT_MS = 13_000;

// ── Flows: one for each remote WireGuard peer ──

export const FLOWS_PER_PORT_MAX = 4_096;
export const FLOWS_PER_RELAY_MAX = 65_536;
export const FLOW_IDLE_MAX_MS = 200_000;
/** After a restart: peers that the relay does not know yet may go on with data (WireGuard type 4). */
export const FLOW_LENIENCY_MS = 180_000;

// ── TCP ──

/** Idle data connections that the agent keeps ready for the next visitors. */
export const STREAM_POOL_CONNECTIONS = 8;
export const STREAM_CONNECTIONS_PER_TUNNEL_MAX = 2_048;
/** Visitors who wait for a data connection of the agent. */
export const STREAM_BACKLOG_MAX = 1_024;
export const STREAM_WAIT_MAX_MS = 10_000;
/** Idle data connections that the relay keeps at most: those that an agent opens beyond are closed. */
export const STREAM_IDLE_MAX = 64;
/** Connections of all tunnels of a relay together. */
export const STREAM_CONNECTIONS_PER_RELAY_MAX = 16_384;
/** Visitors of one address (IPv6: of one /64) at a tunnel at a time. */
export const STREAM_CONNECTIONS_PER_SOURCE_MAX = 1_536;
/** New connections of one address at a tunnel: so many at once, then this many a second. */
export const STREAM_SOURCE_BURST = 1_536;
export const STREAM_SOURCE_PER_SECOND = 256;
/** Addresses whose connections a tunnel counts; beyond, the one that was seen longest ago is forgotten. */
export const STREAM_SOURCES_MAX = 4_096;
/** TCP keep-alive begins after this silence, so that an end that is gone is noticed. */
export const STREAM_KEEP_ALIVE_MS = 15_000;
/** The head that the relay writes before a visitor's first byte. */
export const STREAM_HEAD_MAX_BYTES = 1_024;
/** `underpass connect`: clients of one tunnel at a time. */
export const CONNECT_CLIENTS_MAX = 256;
/** What all clients of a tunnel together may send beyond what has gone on to the agent. */
export const CONNECT_WINDOWS_MAX_BYTES = 16 * 1024 * 1024;
/** The smallest window of a client: so many of them fit into the bound above. */
export const CONNECT_WINDOW_MIN_BYTES = 32 * 1024;
/** How often a tunnel looks for clients that have fallen silent. */
export const CONNECT_CHECK_INTERVAL_MS = 60_000;

// ── The relay and the API ──

export const RELAY_STATUS_INTERVAL_MS = 2_000;
/** A message of the link between a relay and the API. */
export const RELAY_LINK_MESSAGE_MAX_BYTES = 1024 * 1024;

// ── Lists ──

export const ALLOWED_CIDRS_MAX = 100;
export const NETWORKS_PER_ORG_MAX = 100;
export const NETWORK_NAME_MAX_CHARS = 63;
export const DEVICE_NAME_MAX_CHARS = 63;
