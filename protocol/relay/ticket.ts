/**
 * A relay ticket: a JWT (RFC 7519), valid for five minutes, that the API signs with the key of its access tokens and a
 * relay verifies with `/.well-known/jwks.json`. It allows an agent to serve one port, within bounds.
 */
import { z } from "zod";

/** The `typ` of its header (RFC 8725 §3.11): no other JWT of the service can be used as a ticket. */
export const RELAY_TICKET_TYPE = "relay-ticket+jwt";

export function toRelayAudience(relayId: string): string {
  return `relay:${relayId}`;
}

/** Seconds since the epoch, by the clock of the API. An agent computes from them how long its ticket is valid. */
export const TicketTimes = z.object({ iat: z.int(), exp: z.int() });

const TicketClaims = z.object({
  /** The network or tunnel. */
  sub: z.uuid(),
  org: z.uuid(),
  /** The port that is reserved for it. */
  port: z.int().min(1).max(65_535),
  /**
   * When two agents ask for one port, the one with the higher generation serves it. Milliseconds since the epoch, and higher than
   * in all earlier tickets for the relay.
   */
  generation: z.int().min(0),
  /** Megabits a second, in each direction. */
  mbps: z.int().min(1),
  /** Identifies the capability token that requested the ticket, so that its revocation finds the association. Hexadecimal. */
  nonce: z.string(),
  /** Seconds since the epoch. */
  exp: z.int(),
});

export const NetworkTicket = TicketClaims.extend({
  kind: z.literal("network"),
  /** The key of the WireGuard server behind the agent: 32 bytes in base64. */
  server_public_key: z.string(),
});
export type NetworkTicket = z.infer<typeof NetworkTicket>;

export const TunnelTicket = TicketClaims.extend({
  kind: z.literal("tunnel"),
  /** Blocks that visitors may come from; null: from anywhere. */
  cidrs: z.array(z.string()).nullable(),
});
export type TunnelTicket = z.infer<typeof TunnelTicket>;

export const RelayTicket = z.discriminatedUnion("kind", [NetworkTicket, TunnelTicket]);
export type RelayTicket = z.infer<typeof RelayTicket>;
