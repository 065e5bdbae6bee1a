/**
 * Why one side closes the agent's WebSocket. The close reason starts with the code's name; the text after the colon is
 * for a person.
 */
export const CLOSE = {
  /** The other side violated the protocol. */
  protocol_error: 4400,
  /** The token is unreadable, tampered with, expired, revoked or of the wrong kind. */
  unauthorized: 4401,
  BUDGET_EXCEEDED: 4402,
  /** The token is valid but does not allow this tunnel. */
  forbidden: 4403,
  tunnel_deleted: 4404,
  /** Nothing was received from the other side. */
  heartbeat_timeout: 4408,
  /** The name belongs to another organization, or an agent with another token is serving it now. */
  duplicate_name: 4409,
  /** A newer connection with the same token took the tunnel over. */
  replaced: 4410,
  /** The tunnel has expired. */
  tunnel_expired: 4411,
  /** A member of the organization ended this connection: reconnect in about five seconds. */
  connection_ended: 4412,
  /** The private network was deleted. */
  network_deleted: 4413,
  /** The network's server was registered again or removed, or the public port has changed: ask for a new ticket. */
  server_changed: 4414,
  /** The custom domain is not one of the organization's. */
  domain_not_found: 4415,
  domain_not_verified: 4416,
  /** The custom domain leads to another tunnel than the one that the agent asks for. */
  domain_in_use: 4417,
  /** The organization's plan does not include a gate that the agent sets. */
  upgrade_required: 4418,
  /** The relay can't listen on the public port: another program on its machine uses it. */
  port_unusable: 4419,
  invalid_request: 4422,
  /** The owner stopped the tunnel and may start it again: try every few seconds. */
  tunnel_stopped: 4423,
  /** No protocol version in common. */
  unsupported_version: 4426,
  /** The token's or the plan's number of tunnels is in use. */
  quota_exceeded: 4429,
  /** The agent sent more at once than the tunnel can hold: reconnect. */
  overloaded: 4431,
  internal: 4500,
  /** The server restarts, or its database does not answer: reconnect. */
  going_away: 4503,
} as const;

export type CloseName = keyof typeof CLOSE;

const RECONNECT: ReadonlySet<number> = new Set([
  CLOSE.heartbeat_timeout,
  CLOSE.connection_ended,
  CLOSE.tunnel_stopped,
  CLOSE.server_changed,
  CLOSE.port_unusable,
  CLOSE.overloaded,
  CLOSE.internal,
  CLOSE.going_away,
]);

/** @returns null for a close code that is not one of ours: the platform's or the network's. */
export function findCloseName(code: number): CloseName | null {
  for (const name of Object.keys(CLOSE) as CloseName[]) if (CLOSE[name] === code) return name;
  return null;
}

/**
 * Whether an agent that was closed with `code` should reconnect. Codes that are not ours (1006, a proxy's 1011) say
 * nothing about the tunnel: the connection was lost, so the agent reconnects.
 */
export function shouldReconnect(code: number): boolean {
  return findCloseName(code) === null || RECONNECT.has(code);
}
