/** Audit actions of accounts and their sessions. */
import type { ActionDescription } from "./action-description.ts";

export const ACCOUNT_ACTIONS = {
  account_created: {
    resource: "user",
    predicate: "created the account",
    description: "The account was created.",
  },
  sign_up_repeated: {
    resource: "user",
    predicate: "had another sign-up with the address of the account",
    description: "The address of this account was used for another sign-up.",
  },
  email_verified: {
    resource: "user",
    predicate: "confirmed the email address",
    description: "The email address was confirmed.",
  },
  password_reset_requested: {
    resource: "user",
    predicate: "was sent a link to reset the password",
    description: "An email with a link to reset the password was sent.",
  },
  password_reset: {
    resource: "user",
    predicate: "reset the password with a mailed link",
    description:
      "The password was reset with such a link; `metadata.keepTokens` says whether tokens were kept.",
  },
  identity_linked: {
    resource: "user",
    predicate: "linked the sign-in provider {provider}",
    description: "The account can sign in with a provider; `metadata.provider` names it.",
  },
  mfa_enabled: {
    resource: "user",
    predicate: "turned on two-factor authentication",
    description: "Two-factor authentication was turned on.",
  },
  mfa_disabled: {
    resource: "user",
    predicate: "turned off two-factor authentication with {factor}",
    description: "Two-factor authentication was turned off; `metadata.factor` names the proof.",
  },
  mfa_failed: {
    resource: "user",
    predicate: "failed the second step of a sign-in with {factor}",
    description: "A factor of two-factor authentication was wrong; `metadata.factor` says which.",
  },
  mfa_removal_requested: {
    resource: "user",
    predicate: "requested a link that removes two-factor authentication",
    description: "A link that removes two-factor authentication after a day was mailed.",
  },
  mfa_removal_canceled: {
    resource: "user",
    predicate: "canceled the removal of two-factor authentication",
    description: "The removal of two-factor authentication was canceled.",
  },
  reauthentication_failed: {
    resource: "user",
    predicate: "failed to confirm their identity with {factor}",
    description:
      "A signed-in user sent a wrong password or code to confirm their identity; `metadata.factor` says which.",
  },
  session_reauthenticated: {
    resource: "session",
    predicate: "confirmed their identity with {factor}",
    description: "The user confirmed their identity again; `metadata.factor` names the proof.",
  },
  session_created: {
    resource: "session",
    predicate: "signed in",
    description:
      "The user signed in with `metadata.deviceName`; `newDevice` and `newAddress` say that no earlier sign-in had it.",
  },
  session_revoked: {
    resource: "session",
    predicate: "ended a session",
    description: "The session was ended.",
  },
  session_reuse_detected: {
    resource: "session",
    predicate: "had a session ended, because its old cookie was used again",
    description:
      "A refresh cookie that had been replaced was used again, so the session was ended.",
  },
  device_approved: {
    resource: "device",
    predicate: "approved the sign-in of the machine {it}",
    description: "A machine was signed in; `metadata.label` is its name.",
  },
  device_denied: {
    resource: "device",
    predicate: "denied the sign-in of the machine {it}",
    description: "The sign-in of a machine was denied; `metadata.label` is the name that it gave.",
  },
} as const satisfies Record<string, ActionDescription>;
