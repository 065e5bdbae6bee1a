/** Why a tunnel expires earlier than its agent asked for. */

/**
 * `plan`: the tunnel has the longest lifetime of its plan. `maximum`: it has that of all tunnels, `TUNNEL_TTL_MAX_SECONDS`.
 * `existing_tunnel`: it existed, and its expiry is never postponed.
 */
export const TTL_LIMITS = ["plan", "maximum", "existing_tunnel"] as const;
export type TtlLimit = (typeof TTL_LIMITS)[number];
