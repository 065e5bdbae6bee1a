/**
 * The rules of the identity gate. A visitor who signed in with the provider has a pass with an email address.
 * Each request compares that address with the current allow lists.
 */
import { parseHost } from "../protocol/hosts.ts";
import type { AllowList } from "../protocol/schemas/access/identity-gate.ts";

export interface IdentityGate extends AllowList {
  tunnelId: string;
}

/**
 * - `signed_out`: no pass, or none that is valid for this tunnel and host.
 * - `redeeming`: the provider redirected the visitor back, with a ticket to exchange for a pass.
 * - `foreign_page`: the visitor may pass, but a page of another host made the request.
 */
export type IdentityVerdict =
  | "allowed"
  | "signed_out"
  | "redeeming"
  | "foreign_page"
  | { denied: string }
  | { keysDownForMs: number };

/** On the tunnel's own host. While the gate is on, the local server does not receive requests for this path. */
export const SIGN_IN_TICKET_PATH = "/.underpass/edge-auth";

/** In a refusal, for the edge only: which step of signing in comes next. Visitors do not receive it. */
export const SIGN_IN_HEADER = "underpass-sign-in";
export type SignInStep = "start" | "finish" | "switch";

/** Two empty lists allow every address. @param email normalized like the entries of the lists. */
export function isAllowedEmail({ domains, emails }: AllowList, email: string): boolean {
  if (domains.length === 0 && emails.length === 0) return true;
  // The whole part after the last `@` must match: a subdomain belongs to other people.
  return emails.includes(email) || domains.includes(email.slice(email.lastIndexOf("@") + 1));
}

export function formatDeniedMessage(email: string): string {
  return `You are signed in as ${email}, and this account has no access to this tunnel.`;
}

export const FOREIGN_PAGE_MESSAGE =
  "A page of another host made this request. It may not use your access to this tunnel.";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Whether a page of another host made a request that may change something. A browser sends the pass with it when that host is
 * another tunnel: for `SameSite`, all tunnels of a domain are one site.
 */
export function isFromForeignPage(request: {
  method: string;
  origin: string | null;
  authority: string;
  isWebSocket: boolean;
}): boolean {
  const { method, origin, authority, isWebSocket } = request;
  if (origin === null || (SAFE_METHODS.has(method) && !isWebSocket)) return false;
  const host = parseHost(origin.replace(/^[a-z]+:\/\//, ""));
  return host === null || host !== parseHost(authority);
}
