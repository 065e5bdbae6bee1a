/** Accounts, their sessions and second factors. */
import { z } from "zod";
import { ROLES } from "../../roles.ts";
import { APPROVAL_STATUSES } from "../organizations/organizations.ts";
import { BILLING_MODES } from "../billing.ts";
import {
  exactlyOne,
  Instant,
  MailedToken,
  NewPassword,
  TypedCode,
  TypedEmail,
  Uuid,
} from "../scalars.ts";
import { Entitlements } from "./entitlements.ts";

export const SignUp = z.object({ email: TypedEmail, password: NewPassword });

/** An address that may have an account. One that is not valid is answered like one without an account. */
const AccountEmail = z.string().regex(/^[^\0]*$/, "must not contain a NUL character");

export const Credentials = z.object({ email: AccountEmail, password: z.string() });
export const EmailAddress = z.object({ email: AccountEmail });
export const EmailCode = z.object({ email: AccountEmail, code: TypedCode });
export const Status = z.object({ status: z.string() });
export type Status = z.infer<typeof Status>;

export const AccountSummary = z.object({
  access_token: z.string(),
  user: z.object({ id: z.uuid(), email: z.string() }),
  active_org: z.object({
    id: z.uuid(),
    name: z.string(),
    slug: z.string(),
    role: z.enum(ROLES),
    approval_status: z.enum(APPROVAL_STATUSES),
  }),
  is_superadmin: z.boolean(),
});
export type AccountSummary = z.infer<typeof AccountSummary>;

/** The response to a login when a second factor is required. */
export const MfaRequired = z.object({
  mfa_required: z.literal(true),
  challenge_token: z.string(),
});
export type MfaRequired = z.infer<typeof MfaRequired>;

export const Me = AccountSummary.extend({
  has_password: z.boolean().describe("false: the account signs in through a provider only."),
  mfa_enabled: z.boolean(),
  mfa_removable_at: Instant.nullable().describe(
    "When a mailed link can remove the second factor; null: no removal is pending.",
  ),
  entitlements: Entitlements,
  billing_mode: z.enum(BILLING_MODES).describe("`none`: the server sells no plans."),
});
export type Me = z.infer<typeof Me>;

/** For a caller who knows whose session the cookie should be. */
export const RenewSession = z.object({
  user_id: Uuid.optional().describe("The user whose session the caller expects."),
});

export const AccessToken = z.object({ access_token: z.string() });
export type AccessToken = z.infer<typeof AccessToken>;

export const Session = z.object({
  id: z.uuid(),
  device: z
    .string()
    .describe("`Firefox on Linux`, or the client's own user agent; `Unknown device` without one."),
  ip: z.string(),
  createdAt: Instant,
  lastSeenAt: Instant.describe("Accurate to the minute while the session is used."),
  current: z.boolean().describe("Whether it is the caller's own session."),
});
export type Session = z.infer<typeof Session>;
export const SessionList = z.object({ sessions: z.array(Session) });
export type SessionList = z.infer<typeof SessionList>;

export const PasswordReset = z.object({
  token: MailedToken,
  new_password: NewPassword,
  keep_tokens: z
    .boolean()
    .default(false)
    .describe(
      "true: the capability tokens and master keys that sessions of the account minted stay valid.",
    ),
});

/** A password, or a code of the second factor. */
export const Reauthenticate = z
  .object({ password: z.string().optional(), code: TypedCode.optional() })
  .refine(({ password, code }) => (password === undefined) !== (code === undefined), {
    path: ["password"],
    error: "is required unless code is given, and must not be given together with it",
  })
  .meta(exactlyOne("password", "code"));
