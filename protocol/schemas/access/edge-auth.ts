/** The sign-in that visitors of a tunnel need, and who of those who signed in may pass. */
import { z } from "zod";
import { EMAIL_MAX_CHARS, HOST_MAX_CHARS } from "../../limits.ts";

/** Of each of the two lists of an identity gate. */
const ALLOW_LIST_MAX_ENTRIES = 100;

/** As it was typed: it is normalised, and checked after that, where it is put. */
const Entries = (maxChars: number) => z.array(z.string().max(maxChars)).max(ALLOW_LIST_MAX_ENTRIES);

export const SetEdgeAuth = z.object({
  /** The only one that there is so far. */
  provider: z.string().default("idp_a"),
  allowed_domains: Entries(HOST_MAX_CHARS),
  allowed_emails: Entries(EMAIL_MAX_CHARS),
});

/** Normalised. Both empty: everybody who signed in. */
export const AllowList = z.object({ domains: z.array(z.string()), emails: z.array(z.string()) });
export type AllowList = z.output<typeof AllowList>;

export const EdgeAuthState = z.object({ id: z.uuid(), edge_auth_enabled: z.boolean() });

/** Where a tunnel sends a browser that brings no pass. */
export const StartVisitorSignIn = z.object({
  tunnel_id: z.uuid(),
  /** A path of the tunnel, or an address on its host. Anything else counts as `/`. */
  return_to: z.string().default("/"),
  /** Set by the link of whoever wants to be somebody else than the provider remembers. */
  as_another: z.string().optional(),
  /** Set by the redirect to the service's first host, so that there is never a second one. */
  moved: z.string().optional(),
});
export type StartVisitorSignIn = z.output<typeof StartVisitorSignIn>;
