/** Where a visitor's ticket becomes a pass: the keys say that it is one, the tunnel's object that it is unused. */
import { configOf } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import type { RedeemedTicket, ShownTicket } from "../../rows-binding.ts";
import { openTicket, signPass } from "./visitor-passes.ts";
import { tunnelObject } from "../../objects.ts";

/** @returns null for a ticket that is not, or no longer, good for this tunnel on this host. */
export async function redeemTicket(
  env: Env,
  { ticket: sealed, tunnelId, host }: ShownTicket,
): Promise<RedeemedTicket | null> {
  const config = configOf(env);
  const ticket = await openTicket(config, sealed, { tunnelId, host }, Date.now());
  if (!ticket) return null;
  const isFirst = await tunnelObject(env, tunnelId).spendTicket(ticket.id, ticket.endsAtMs);
  return isFirst ? { pass: await signPass(config, ticket), target: ticket.target } : null;
}
