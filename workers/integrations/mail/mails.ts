/**
 * The mails of the service. Each has a plain and an HTML part with the same text. They load nothing from anywhere, and
 * their links do not track who follows them.
 */
import {
  EMAIL_CODE_MAX_MS,
  MFA_REMOVAL_USABLE_MS,
  PASSWORD_RESET_MAX_MS,
  PAYMENT_GRACE_MS,
} from "../../limits.ts";
import { describeOverLimit } from "../../../protocol/over-limits.ts";
import type { Config } from "../../config/config.ts";
import type { Downgrade, PlanReason } from "../../store/billing/plan-changes.ts";
import { DAY_MS, MINUTE_MS } from "../../../shared/time.ts";
import { composeMail, type Mail } from "./compose-mail.ts";

/** A secret that proves that its bearer reads the mails to an address. */
interface MailedToken {
  token: string;
  expiresAt: Date;
}

export function verificationMail(to: string, code: string, expiresAt: Date): Mail {
  return composeMail(
    to,
    `${code} is your Underpass code`,
    [
      `Enter this code to verify your email address. It is ${describeValidity(EMAIL_CODE_MAX_MS, expiresAt)}.`,
      "This address was used to sign up for Underpass. Enter the code only on the page where you have just signed up. If you did not sign up, ignore this email: without the code, no account is activated.",
    ],
    { code },
  );
}

/** Sent when an address signs up a second time: the API's answer must not reveal that the account exists. */
export function alreadyRegisteredMail(to: string, config: Config): Mail {
  return composeMail(
    to,
    "You already have an Underpass account",
    [
      "This address was used to sign up for Underpass, but it already has an account. Sign in instead.",
      "If you did not sign up, ignore this email: nothing has changed.",
    ],
    { label: "Sign in", url: config.publicOrigin },
  );
}

/** The token is in the URL's fragment, which browsers send to no server, so it appears in no log. */
export function passwordResetMail(
  to: string,
  { token, expiresAt }: MailedToken,
  config: Config,
): Mail {
  return composeMail(
    to,
    "Set a new Underpass password",
    [
      `Follow this link to set a new password. It is ${describeValidity(PASSWORD_RESET_MAX_MS, expiresAt)}, and works once.`,
      `If you use the API instead of the page, this is the token: ${token}`,
      "A new password was requested for the account with this address. If you did not request it, ignore this email: nothing has changed.",
    ],
    { label: "Set a new password", url: `${config.publicOrigin}/reset#token=${token}` },
  );
}

/** For an address that was verified after sign-ups with different passwords. */
export function choosePasswordMail(
  to: string,
  { token, expiresAt }: MailedToken,
  config: Config,
): Mail {
  return composeMail(
    to,
    "Choose your Underpass password",
    [
      `Your email address is verified. This address was used to sign up with different passwords, perhaps not only by you, so none of them was accepted. Follow this link to choose your password. It is ${describeValidity(PASSWORD_RESET_MAX_MS, expiresAt)}, and works once.`,
      `If you use the API instead of the page, this is the token: ${token}`,
    ],
    { label: "Choose your password", url: `${config.publicOrigin}/reset#token=${token}` },
  );
}

/** @param keepTokens whether the tokens that sessions minted stay valid. */
export function passwordChangedMail(
  to: string,
  { keepTokens }: { keepTokens: boolean },
  config: Config,
): Mail {
  const tokens = keepTokens
    ? "Capability tokens stay valid."
    : "Capability tokens and master keys that were minted in its sessions were revoked.";
  return composeMail(
    to,
    "Your Underpass password was changed",
    [
      `The password of your account was changed with a link that was sent to this address. All sessions were signed out. ${tokens}`,
      "If you did not change it, another person can read your email: secure your mailbox first, then set a new password.",
    ],
    { label: "Sign in", url: config.publicOrigin },
  );
}

/** @param state of two-factor authentication after the change. */
export function secondFactorMail(to: string, state: "on" | "off", config: Config): Mail {
  const consequence =
    state === "on"
      ? "From now on, signing in requires a code from your authenticator app. Your other sessions were signed out."
      : "From now on, signing in requires no code.";
  return composeMail(
    to,
    `Two-factor authentication for your Underpass account is ${state}`,
    [
      `Two-factor authentication for your account was turned ${state}. ${consequence}`,
      "If you did not do this, another person has access to your account: set a new password, then check its sessions and recent events.",
    ],
    { label: "Your account", url: `${config.publicOrigin}/me` },
  );
}

/** The page that the link opens can both remove the second factor and cancel the request. */
export function removalRequestedMail(
  to: string,
  { token, usableAt }: { token: string; usableAt: Date },
  config: Config,
): Mail {
  return composeMail(
    to,
    "Two-factor authentication for your Underpass account can be removed soon",
    [
      `A person who signed in with your password, or with your account at a sign-in provider, asked to remove two-factor authentication from your Underpass account. During the ${MFA_REMOVAL_USABLE_MS / DAY_MS} days after ${usableAt.toUTCString()}, this link removes it. Before and after that time, the same link cancels the request.`,
      `If you use the API instead of the page, this is the token: ${token}`,
      "If you did not ask for this, another person knows your password or uses your account at the provider: cancel the request with the link, then set a new password and secure that account.",
    ],
    {
      label: "Cancel the request, or remove two-factor authentication",
      url: `${config.publicOrigin}/two-factor#token=${token}`,
    },
  );
}

/** Names of people and organizations are user input: they appear as text only. */
export function invitationMail(
  to: string,
  {
    inviter,
    organization: name,
    token,
    expiresAt,
  }: MailedToken & { inviter: string; organization: string },
  config: Config,
): Mail {
  const organization = breakLinks(name);
  return composeMail(
    to,
    `${inviter} invites you to ${organization} on Underpass`,
    [
      `${inviter} invites you to join the organization “${organization}” on Underpass. The invitation is valid until ${expiresAt.toUTCString()}, and for an account with this address only.`,
      `If you use the API instead of the page, this is the invitation token: ${token}`,
      "If you did not expect this invitation, ignore this email: nothing happens unless you accept it.",
    ],
    { label: "Accept the invitation", url: `${config.publicOrigin}/invitation#token=${token}` },
  );
}

/** Sent to the owner of an existing account. @param host of the provider: people know the provider by it. */
export function identityLinkedMail(to: string, host: string, config: Config): Mail {
  return composeMail(
    to,
    "A new way to sign in to your Underpass account",
    [
      `Your account at ${host}, which has this email address, was linked to your Underpass account. You can now sign in with it.`,
      `If you did not do this, another person may have access to your account at ${host}: secure it first, then check the sessions and recent events of your Underpass account.`,
    ],
    { label: "Your account", url: `${config.publicOrigin}/me` },
  );
}

const REASONS: Record<PlanReason, string> = {
  paid: "The subscription was changed.",
  payment_overdue: "A payment has been overdue for too long.",
  unpaid: "The subscription is unpaid.",
  canceled: "The subscription was canceled.",
  paused: "The subscription is paused.",
};

export function downgradeMail(to: string, downgrade: Downgrade, config: Config): Mail {
  const { from, to: plan, reason, overLimits } = downgrade;
  const organization = breakLinks(downgrade.organization);
  return composeMail(
    to,
    `Your Underpass plan is now ${plan}`,
    [
      `The plan of “${organization}” has changed from ${from} to ${plan}. ${REASONS[reason]}`,
      "Nothing was deleted. Tunnels now end after the maximum lifetime of the new plan.",
      ...overLimits.map(describeOverLimit),
    ],
    { label: "Plan and billing", url: `${config.publicOrigin}/billing` },
  );
}

export function overdueMail(
  to: string,
  {
    organization: name,
    plan,
    graceEndsAt,
  }: { organization: string; plan: string; graceEndsAt: Date },
  config: Config,
): Mail {
  const organization = breakLinks(name);
  const days = PAYMENT_GRACE_MS / DAY_MS;
  return composeMail(
    to,
    "A payment for Underpass did not go through",
    [
      `A payment for the ${plan} plan of “${organization}” did not go through. You keep the plan for ${days} days, until ${graceEndsAt.toUTCString()}. Please check your payment method before then.`,
      "Without a payment the plan ends. Nothing is deleted, but features that only this plan includes stop working.",
    ],
    { label: "Plan and billing", url: `${config.publicOrigin}/billing` },
  );
}

/** States the time too, because a mail may arrive late. */
function describeValidity(maxMs: number, expiresAt: Date): string {
  return `valid for ${maxMs / MINUTE_MS} minutes after the request, until ${expiresAt.toUTCString()}`;
}

/**
 * Changes a name so that mail programs find no web address in it, and that it hides no text. A name that was derived
 * from an address, or that is older than the rules for names, can contain both.
 */
function breakLinks(name: string): string {
  return name
    .replaceAll(/\p{Cf}/gu, "")
    .replaceAll("://", " ")
    .replaceAll(/(?<=\S)[.\u3002\uff0e\uff61](?=\S)/g, "$& ");
}
