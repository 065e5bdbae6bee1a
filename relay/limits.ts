/** Limits that several files of the relay share. Those that agents know too are in protocol/relay/limits.ts. */

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
