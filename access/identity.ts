/**
 * The identity gate's rules. Who signed in with the provider has a pass, which says who they are; whether
 * they may visit is asked of the lists as they are now, each time.
 */
import type { AllowList } from "../protocol/schemas/access/edge-auth.ts";

export interface IdentityGate extends AllowList {
  tunnelId: string;
}

/**
 * - `unknown`: no pass, or none that is good here.
 * - `arriving`: on the way back from the provider, with a ticket for a pass.
 */
export type IdentityVerdict =
  "allowed" | "unknown" | "arriving" | { denied: string } | { keysDownForMs: number };

/** On the tunnel's own host. The local server has no such path while the gate is on. */
export const TICKET_PATH = "/.underpass/edge-auth";

/** In a refusal, for the edge: how signing in could help. Visitors don't get it. */
export const SIGN_IN_HEADER = "underpass-sign-in";
export type SignInStep = "start" | "finish" | "switch";

/** @param email normalised, as the lists are. */
export function isOnList({ domains, emails }: AllowList, email: string): boolean {
  if (domains.length === 0 && emails.length === 0) return true;
  // Of the whole part behind the last `@`: a sub-domain is another domain, with other people.
  return emails.includes(email) || domains.includes(email.slice(email.lastIndexOf("@") + 1));
}

export function formatDeniedMessage(email: string): string {
  return `You are signed in as ${email}, who may not visit this tunnel.`;
}
