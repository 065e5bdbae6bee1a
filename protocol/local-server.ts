/** The local server of a tunnel, as its agent describes it. */

/** The longest description that an agent sends. */
export const LOCAL_SERVER_MAX_CHARS = 300;

/** The API requires a port of every tunnel. Agents send this one for a local server that has none, such as a Unix socket. */
export const NO_LOCAL_PORT = 80;

const UNIX_SOCKET_PREFIX = "unix:";

/**
 * The port of a TCP server behind the connected agent.
 * @param local as the agent describes it; undefined: the agent is of an earlier version.
 * @returns undefined when the server has no port, or may have none.
 */
export function findTcpPort(
  localPort: number | undefined,
  local: string | undefined,
): number | undefined {
  const mayHavePort =
    local === undefined ? localPort !== NO_LOCAL_PORT : !local.startsWith(UNIX_SOCKET_PREFIX);
  return mayHavePort ? localPort : undefined;
}

/** @returns null when the local server may have no port. A tunnel that was never connected has the port that a user chose. */
export function findLocalPort({
  localPort,
  lastSeenAt,
}: {
  localPort: number;
  lastSeenAt: string | Date | null;
}): number | null {
  return localPort === NO_LOCAL_PORT && lastSeenAt !== null ? null : localPort;
}
