/**
 * Relay tickets: an agent presents one to a relay to serve a port. Signed with the keys of access tokens, which a
 * relay reads from `/.well-known/jwks.json`; type and audience keep the two apart.
 */
import { SignJWT } from "jose";
import { RELAY_TICKET_SECONDS } from "../../../protocol/relay/limits.ts";
import {
  RELAY_TICKET_TYPE,
  toRelayAudience,
  type NetworkTicket,
  type TunnelTicket,
} from "../../../protocol/relay/ticket.ts";
import type { RelayAccess } from "../../../protocol/schemas/networks.ts";
import { callObject } from "../../call-object.ts";
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { relayObject } from "../../objects.ts";
import { getAccessTokenKeys } from "../keys.ts";

type TimeClaims = "exp" | "generation";
type TicketClaims = Omit<NetworkTicket, TimeClaims> | Omit<TunnelTicket, TimeClaims>;

/** Where agents and visitors reach a relay. */
interface RelayAddress {
  id: string;
  url: string;
  host: string;
}

/**
 * A new ticket, with a higher generation than all earlier ones, and the relay to present it to.
 * @throws ApiError `unavailable` when the relay's object can't be reached.
 */
export async function issueRelayAccess(
  env: Env,
  config: Config,
  relay: RelayAddress,
  claims: TicketClaims,
): Promise<RelayAccess> {
  const { id, url, host } = relay;
  const generation = await callObject(relayObject(env, id).takeTicketGeneration());
  const generated = { ...claims, generation };
  const { ticket, expiresAtMs } = await signRelayTicket(config, id, generated, Date.now());
  const expires_at = new Date(expiresAtMs).toISOString();
  return { ticket, expires_at, relay: { id, url, host }, port: claims.port };
}

async function signRelayTicket(
  config: Config,
  relayId: string,
  claims: TicketClaims & { generation: number },
  nowMs: number,
): Promise<{ ticket: string; expiresAtMs: number }> {
  const { kid, key } = (await getAccessTokenKeys(config)).signer;
  const { sub, ...others } = claims;
  const issuedAt = Math.floor(nowMs / 1000);
  const expiresAt = issuedAt + RELAY_TICKET_SECONDS;
  const ticket = await new SignJWT(others)
    .setProtectedHeader({ alg: "ES256", typ: RELAY_TICKET_TYPE, kid })
    .setSubject(sub)
    .setIssuer(config.publicOrigin)
    .setAudience(toRelayAudience(relayId))
    .setIssuedAt(issuedAt)
    .setExpirationTime(expiresAt)
    .sign(key);
  return { ticket, expiresAtMs: expiresAt * 1000 };
}
