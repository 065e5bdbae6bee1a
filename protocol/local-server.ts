/** The local server of a tunnel, as its agent describes it. */

/** The longest description that an agent sends. */
export const LOCAL_SERVER_MAX_CHARS = 300;

/** The API requires a port of every tunnel. Agents send this one for a local server that has none, such as a Unix socket. */
export const NO_LOCAL_PORT = 80;

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
