/**
 * Visitor tickets: each carries a sign-in from the service's own host to the tunnel's, where it is exchanged for a visitor
 * pass. A ticket is encrypted, because URLs end up in logs. The keys prove that it is genuine, and the tunnel's object that
 * it is unused.
 */
import { z } from "zod";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
import { getConfig, type Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import type { RedeemedTicket, PresentedTicket } from "../../internal-api-binding.ts";
import { VISITOR_TICKET_MAX_MS } from "../../limits.ts";
import { tunnelObject } from "../../objects.ts";
import { randomSecret } from "../accounts/codes.ts";
import { encrypt, decrypt } from "../encryption.ts";
import { signVisitorPass } from "./visitor-passes.ts";

const PURPOSE = "visitor ticket";

const VisitorTicket = z.object({
  /** Identifies a ticket that has been used. */
  id: z.string(),
  tunnelId: z.uuid(),
  host: z.string(),
  /** SHA-256 of the nonce of the browser that began the sign-in. Earlier versions stored none: none matches. */
  browser: z.string().default(""),
  email: z.string(),
  /** The path on that host that the visitor requested. */
  target: z.string(),
  endsAtMs: z.number(),
});
type VisitorTicket = z.output<typeof VisitorTicket>;

export function encryptVisitorTicket(
  config: Config,
  visit: Pick<VisitorTicket, "tunnelId" | "host" | "browser" | "email" | "target">,
  nowMs: number,
): Promise<string> {
  const ticket: VisitorTicket = {
    ...visit,
    id: randomSecret(),
    endsAtMs: nowMs + VISITOR_TICKET_MAX_MS,
  };
  return encrypt(config, PURPOSE, JSON.stringify(ticket));
}

/** @returns null unless this is a valid ticket for this tunnel and host that has not expired. */
export async function decryptVisitorTicket(
  config: Config,
  encrypted: string,
  place: Pick<VisitorTicket, "tunnelId" | "host">,
  nowMs: number,
): Promise<VisitorTicket | null> {
  const text = await decrypt(config, PURPOSE, encrypted).catch(() => null);
  if (text === null) return null;
  const ticket = VisitorTicket.parse(JSON.parse(text));
  const isHere = ticket.tunnelId === place.tunnelId && ticket.host === place.host;
  return isHere && nowMs < ticket.endsAtMs ? ticket : null;
}

/** @returns null for a ticket that is invalid, expired or used, or that is for another tunnel, host or browser. */
export async function redeemVisitorTicket(
  env: Env,
  { ticket: encrypted, browser, ...place }: PresentedTicket,
): Promise<RedeemedTicket | null> {
  const config = getConfig(env);
  const ticket = await decryptVisitorTicket(config, encrypted, place, Date.now());
  if (!ticket) return null;
  const tunnel = tunnelObject(env, place.tunnelId);
  // In the wrong browser too: an attacker whose browser began the sign-in must not find an unused ticket later.
  const isFirst = await tunnel.consumeSignInTicket(ticket.id, ticket.endsAtMs);
  const isSameBrowser = browser !== null && equalInConstantTime(ticket.browser, browser);
  if (!isFirst || !isSameBrowser) return null;
  return { pass: await signVisitorPass(config, ticket), target: ticket.target };
}
