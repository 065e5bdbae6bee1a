/**
 * What a visitor gets who has signed in: a ticket, which carries the sign-in from our own host to the tunnel's, and in
 * exchange for it a visitor pass, which the tunnel's gate requires. The ticket is encrypted, since URLs end up in logs;
 * the pass is signed, so that public keys suffice to verify it.
 */
import { SignJWT } from "jose";
import { z } from "zod";
import { PASS_ALGORITHM, PASS_TYPE } from "../../../access/authenticators/passes.ts";
import { VISITOR_PASS_SECONDS, VISITOR_TICKET_MAX_MS } from "../../limits.ts";
import type { Config } from "../../config/config.ts";
import { randomSecret } from "../accounts/codes.ts";
import { getAccessTokenKeys } from "../keys.ts";
import { encrypt, decrypt } from "../encryption.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";

const PURPOSE = "visitor ticket";

const VisitorTicket = z.object({
  /** Identifies a ticket that has been used. */
  id: z.string(),
  tunnelId: z.uuid(),
  host: z.string(),
  /** SHA-256 of the nonce of the browser that began the sign-in. Earlier versions stored none: none matches. */
  browser: z.string().default(""),
  email: z.string(),
  /** Where on that host the visitor wanted to go. */
  target: z.string(),
  endsAtMs: z.number(),
});
export type VisitorTicket = z.output<typeof VisitorTicket>;

export function encryptVisitorTicket(
  config: Config,
  visit: Pick<VisitorTicket, "tunnelId" | "host" | "browser" | "email" | "target">,
  now: number,
): Promise<string> {
  const ticket: VisitorTicket = {
    ...visit,
    id: randomSecret(),
    endsAtMs: now + VISITOR_TICKET_MAX_MS,
  };
  return encrypt(config, PURPOSE, JSON.stringify(ticket));
}

/** @returns null unless this is a valid ticket for this tunnel, host and browser that has not expired. */
export async function decryptVisitorTicket(
  config: Config,
  encrypted: string,
  place: Pick<VisitorTicket, "tunnelId" | "host" | "browser">,
  now: number,
): Promise<VisitorTicket | null> {
  const text = await decrypt(config, PURPOSE, encrypted).catch(() => null);
  if (text === null) return null;
  const ticket = VisitorTicket.parse(JSON.parse(text));
  const isHere = ticket.tunnelId === place.tunnelId && ticket.host === place.host;
  const isSameBrowser = equalInConstantTime(ticket.browser, place.browser);
  return isHere && isSameBrowser && now < ticket.endsAtMs ? ticket : null;
}

export async function signPass(
  config: Config,
  { email, tunnelId, host }: Pick<VisitorTicket, "email" | "tunnelId" | "host">,
): Promise<string> {
  const { kid, key } = (await getAccessTokenKeys(config)).signer;
  return new SignJWT({ email, tunnel: tunnelId })
    .setProtectedHeader({ alg: PASS_ALGORITHM, typ: PASS_TYPE, kid })
    .setAudience(host)
    .setIssuedAt()
    .setExpirationTime(`${VISITOR_PASS_SECONDS}s`)
    .sign(key);
}
