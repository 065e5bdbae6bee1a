/** Where a visitor's ticket becomes a pass: the keys say that it is one, the tunnel's object that it is unused. */
import { configOf } from "./config.ts";
import type { Env } from "./env.ts";
import { openTicket, signPass } from "./identity/visitor-passes.ts";
import { tunnelObject } from "./objects.ts";

export interface ShownTicket {
  ticket: string;
  tunnelId: string;
  host: string;
}

export interface Redeemed {
  pass: string;
  /** A path of the tunnel. */
  target: string;
}

/** @returns null for a ticket that is not, or no longer, good for this tunnel on this host. */
export async function redeemTicket(
  env: Env,
  { ticket: sealed, tunnelId, host }: ShownTicket,
): Promise<Redeemed | null> {
  const config = configOf(env);
  const ticket = await openTicket(config, sealed, { tunnelId, host }, Date.now());
  if (!ticket) return null;
  const isFirst = await tunnelObject(env, tunnelId).spendTicket(ticket.id, ticket.endsAtMs);
  return isFirst ? { pass: await signPass(config, ticket), target: ticket.target } : null;
}
