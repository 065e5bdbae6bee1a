/** The identity gate of a tunnel: visitors must sign in, and its lists decide who may pass. */
import { z } from "zod";
import { EMAIL_MAX_CHARS, HOST_MAX_CHARS } from "../../limits.ts";
import { TypedDomain, TypedEmail, Uuid } from "../scalars.ts";

/** For each of the two lists of an identity gate. */
const ALLOW_LIST_MAX_ENTRIES = 100;

/** Not normalized: entries are normalized, and then checked, when they are set. */
const Entries = (entry: z.ZodString) => z.array(entry).max(ALLOW_LIST_MAX_ENTRIES);

/** The provider that visitors can be sent to. */
export const VISITOR_PROVIDER = "idp_a";

export const SetIdentityGate = z.object({
  provider: z
    .string()
    .meta({ enum: [VISITOR_PROVIDER] })
    .default(VISITOR_PROVIDER)
    .describe("The only provider so far."),
  allowed_domains: Entries(TypedDomain(HOST_MAX_CHARS)),
  allowed_emails: Entries(TypedEmail.max(EMAIL_MAX_CHARS)),
});

/** Normalized. When both are empty, every visitor who has signed in may pass. */
export const AllowList = z.object({ domains: z.array(z.string()), emails: z.array(z.string()) });
export type AllowList = z.output<typeof AllowList>;

export const IdentityGateState = z.object({ id: z.uuid(), edge_auth_enabled: z.boolean() });

/** The provider and the lists are null where no sign-in is required. */
export const TunnelIdentityGate = IdentityGateState.extend({
  provider: z.literal(VISITOR_PROVIDER).nullable().describe("Where visitors sign in."),
  allowed_domains: z.array(z.string()).nullable(),
  allowed_emails: z.array(z.string()).nullable(),
});
export type TunnelIdentityGate = z.output<typeof TunnelIdentityGate>;

/** The query of the address to which a tunnel redirects a browser without a visitor pass. */
export const StartVisitorSignIn = z.object({
  tunnel_id: Uuid,
  return_to: z
    .string()
    .default("/")
    .describe("A path of the tunnel, or an address on its host. Anything else counts as `/`."),
  browser: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, "must be 43 characters of base64url")
    .optional()
    .describe(
      "SHA-256, in base64url, of the nonce in the cookie that the tunnel's host has given to the browser. Without it, the browser is redirected to the tunnel, where a sign-in begins.",
    ),
  as_another: z
    .string()
    .optional()
    .describe(
      "Set by the link to sign in with another account than the provider's current session.",
    ),
  moved: z
    .string()
    .optional()
    .describe(
      "Set by the redirect to the service's primary host, so that there is never a second redirect.",
    ),
});
export type StartVisitorSignIn = z.output<typeof StartVisitorSignIn>;
