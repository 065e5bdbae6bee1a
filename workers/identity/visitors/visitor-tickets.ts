/** Where a visitor's ticket becomes a pass: the keys say that it is one, the tunnel's object that it is unused. */
import { getConfig } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import type { RedeemedTicket, PresentedTicket } from "../../rows-binding.ts";
import { decryptTicket, signPass } from "./visitor-passes.ts";
import { tunnelObject } from "../../objects.ts";

/** @returns null for a ticket that is not, or no longer, good for this tunnel on this host. */
export async function redeemTicket(
  env: Env,
  { ticket: sealed, tunnelId, host }: PresentedTicket,
): Promise<RedeemedTicket | null> {
  const config = getConfig(env);
  const ticket = await decryptTicket(config, sealed, { tunnelId, host }, Date.now());
  if (!ticket) return null;
  const isFirst = await tunnelObject(env, tunnelId).consumeTicket(ticket.id, ticket.endsAtMs);
  return isFirst ? { pass: await signPass(config, ticket), target: ticket.target } : null;
}
