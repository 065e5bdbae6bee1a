/** Exchanges a visitor's ticket for a pass. The keys prove that it is genuine, the tunnel's object that it is unused. */
import { getConfig } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import type { RedeemedTicket, PresentedTicket } from "../../internal-api-binding.ts";
import { decryptVisitorTicket, signPass } from "./visitor-passes.ts";
import { tunnelObject } from "../../objects.ts";

/** @returns null for a ticket that is invalid, expired or used, or that is for another tunnel, host or browser. */
export async function redeemVisitorTicket(
  env: Env,
  { ticket: encrypted, ...place }: PresentedTicket,
): Promise<RedeemedTicket | null> {
  const config = getConfig(env);
  const ticket = await decryptVisitorTicket(config, encrypted, place, Date.now());
  if (!ticket) return null;
  const tunnel = tunnelObject(env, place.tunnelId);
  const isFirst = await tunnel.consumeSignInTicket(ticket.id, ticket.endsAtMs);
  return isFirst ? { pass: await signPass(config, ticket), target: ticket.target } : null;
}
