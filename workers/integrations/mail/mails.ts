/**
 * What the mails of the service say. Each has one plain and one HTML part with the same words. Nothing in
 * them is loaded from anywhere, and no link counts who follows it.
 */
import { PAYMENT_GRACE_MS } from "../../limits.ts";
import type { OverLimit } from "../../../protocol/schemas/billing.ts";
import type { Config } from "../../config/config.ts";
import type { Downgrade, PlanReason } from "../../store/billing/plan-changes.ts";
import { DAY_MS } from "../../../shared/time.ts";

export interface Mail {
  to: string;
  subject: string;
  text: string;
  html: string;
}

export function verificationMail(to: string, code: string): Mail {
  return mail(
    to,
    `${code} is your Underpass code`,
    [
      "This is your code. It is good for 10 minutes.",
      "Somebody, probably you, signed up for Underpass with this address. If it was not you, ignore this mail: without the code nothing happens.",
    ],
    { code },
  );
}

/** To whoever signs up twice: the answer itself must not say that the account exists. */
export function alreadyRegisteredMail(to: string, config: Config): Mail {
  return mail(
    to,
    "You already have an Underpass account",
    [
      "Somebody, probably you, tried to sign up for Underpass with this address. It has an account already: sign in instead.",
      "If it was not you, ignore this mail: nothing has changed.",
    ],
    { label: "Sign in", url: config.publicOrigin },
  );
}

/** The token is in the fragment: no server's log ever sees it, whoever the link passes. */
export function passwordResetMail(to: string, token: string, config: Config): Mail {
  return mail(
    to,
    "Set a new Underpass password",
    [
      "Follow this link to set a new password. It is good for one hour, and once.",
      `Without a browser, this is the token in it: ${token}`,
      "Somebody, probably you, asked for it with this address. If it was not you, ignore this mail: nothing has changed.",
    ],
    { label: "Set a new password", url: `${config.publicOrigin}/reset#token=${token}` },
  );
}

export function passwordChangedMail(to: string, config: Config): Mail {
  return mail(
    to,
    "Your Underpass password was changed",
    [
      "The password of your account was changed by means of a mail to this address. Everybody who was signed in is signed out.",
      "If it was not you, somebody else reads your mail: secure the mailbox first, then set another password.",
    ],
    { label: "Sign in", url: config.publicOrigin },
  );
}

/** @param isOn what it is from now on. */
export function secondFactorMail(to: string, isOn: boolean, config: Config): Mail {
  const change = isOn ? "on" : "off";
  const consequence = isOn
    ? "Signing in asks for a code of your authenticator from now on, and your other sessions are over."
    : "Signing in asks for your password alone from now on.";
  return mail(
    to,
    `The second factor of your Underpass account is ${change}`,
    [
      `The second factor of your account was turned ${change}. ${consequence}`,
      "If it was not you, somebody else uses your account: set another password, and look at its sessions and recent events.",
    ],
    { label: "Your account", url: config.publicOrigin },
  );
}

/** Who invites and what the organization is called was written by people: it is shown, and nothing else. */
export function invitationMail(
  to: string,
  config: Config,
  { inviter, organization, token }: { inviter: string; organization: string; token: string },
): Mail {
  return mail(
    to,
    `${inviter} invites you to ${organization} on Underpass`,
    [
      `${inviter} invites you to join the organization “${organization}” on Underpass. The invitation is good for 7 days, for an account with this address.`,
      `If a page asks for the invitation itself, it is this: ${token}`,
      "If you don't know what this is about, ignore this mail: nothing happens without you.",
    ],
    { label: "Accept the invitation", url: `${config.publicOrigin}/invitation#token=${token}` },
  );
}

/** To whoever had an account before. @param host what people know the provider by. */
export function identityLinkedMail(to: string, host: string, config: Config): Mail {
  return mail(
    to,
    "A new way to sign in to your Underpass account",
    [
      `Your Underpass account can now be signed in to with an account at ${host} that has this address.`,
      "If that was not you, somebody else may be using your account there: secure that one first, then look at the sessions and recent events of your account here.",
    ],
    { label: "Your account", url: config.publicOrigin },
  );
}

const REASONS: Record<PlanReason, string> = {
  paid: "It was changed.",
  payment_overdue: "A payment has been overdue for longer than it can be.",
  unpaid: "It is not paid for any more.",
  canceled: "It was canceled.",
  paused: "It is paused.",
};

const STOPPED: Record<OverLimit["what"], (count: number, allowed: number) => string> = {
  reserved_subdomains: (count, allowed) =>
    `Reserved subdomains: you keep all ${count}, and can't reserve another one while there are more than ${allowed}.`,
  tunnel_passwords: (count) =>
    `Tunnels with a password: ${count}. Their visitors are turned away until the plan has passwords again or you remove them.`,
  identity_gates: (count) =>
    `Tunnels with a sign-in: ${count}. Their visitors are turned away until the plan has it again or you remove it.`,
  master_keys: (count) =>
    `Master keys: ${count}. They mint no tokens until the plan has them again.`,
};

export function downgradeMail(to: string, downgrade: Downgrade, config: Config): Mail {
  const { organization, from, to: plan, reason, overLimits } = downgrade;
  return mail(
    to,
    `Your Underpass plan is ${plan} now`,
    [
      `The plan of “${organization}” was ${from} and is ${plan} from now on. ${REASONS[reason]}`,
      "Nothing of yours was deleted. Tunnels end after the time that the new plan gives them.",
      ...overLimits.map(({ what, count, allowed }) => STOPPED[what](count, allowed)),
    ],
    { label: "Plan and billing", url: config.publicOrigin },
  );
}

export function overdueMail(
  to: string,
  { organization, plan, graceEndsAt }: { organization: string; plan: string; graceEndsAt: Date },
  config: Config,
): Mail {
  const days = PAYMENT_GRACE_MS / DAY_MS;
  return mail(
    to,
    "A payment for Underpass did not go through",
    [
      `A payment for the ${plan} plan of “${organization}” did not go through. The plan stays for ${days} days, until ${graceEndsAt.toUTCString()}; look at the way you pay until then.`,
      "Without a payment the plan ends. Nothing of yours is deleted, and what the plan alone gives stops working.",
    ],
    { label: "Plan and billing", url: config.publicOrigin },
  );
}

/** What the reader is to use: something to copy, or somewhere to go. */
type Highlight = { code: string } | { label: string; url: string };

/** @param highlight stands after the first paragraph. Its URL is built from `config.publicOrigin`, never from a request. */
function mail(to: string, subject: string, paragraphs: string[], highlight?: Highlight): Mail {
  const [first = "", ...rest] = paragraphs;
  const shown = highlight && plainHighlight(highlight);
  const text = [first, ...(shown ? [shown] : []), ...rest].join("\n\n");
  const paragraph = (words: string) => `<p style="margin:0 0 16px">${escapeHtml(words)}</p>`;
  const html = [
    paragraph(first),
    ...(highlight ? [htmlHighlight(highlight)] : []),
    ...rest.map(paragraph),
  ].join("\n");
  return { to, subject, text: `${text}\n`, html: page(subject, html) };
}

/** No colors of its own: a mailbox in dark mode sets them all, and none clashes. */
function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
</head>
<body style="margin:0;padding:24px">
<div style="max-width:560px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
${body}
</div>
</body>
</html>
`;
}

function plainHighlight(highlight: Highlight): string {
  return "code" in highlight ? `    ${highlight.code}` : `${highlight.label}:\n${highlight.url}`;
}

/** The address itself is in sight as well: what a link says and where it leads are the same. */
function htmlHighlight(highlight: Highlight): string {
  if ("code" in highlight) {
    const style =
      "margin:0 0 16px;font:700 32px/1.25 ui-monospace,Menlo,Consolas,monospace;user-select:all";
    return `<p style="${style}">${escapeHtml(highlight.code)}</p>`;
  }
  const url = escapeHtml(highlight.url);
  return `<p style="margin:0 0 16px"><strong>${escapeHtml(highlight.label)}:</strong><br><a href="${url}" style="word-break:break-all">${url}</a></p>`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
