/** The portal of mock billing: one subscription, with a button for each event that can happen to it. */
import type { SubscriptionRow } from "../../store/billing/subscription-decision.ts";
import { getGraceEnd, isOngoing } from "../../store/billing/subscription-rules.ts";

export const PORTAL_ACTIONS = ["cancel", "resume", "end", "fail", "pay", "give_up"] as const;
export type PortalAction = (typeof PORTAL_ACTIONS)[number];

const LABELS: Record<PortalAction, string> = {
  cancel: "Cancel at the end of the period",
  resume: "Don't cancel",
  end: "End now",
  fail: "Let a payment fail",
  pay: "Pay what is overdue",
  give_up: "Stop retrying the payment",
};

/** Nothing on the page is user input. @param current null when the organization never had a subscription. */
export function renderMockPortalPage(current: SubscriptionRow | null): string {
  const forms = listActions(current).map(
    (action) =>
      `<form method="post"><button name="action" value="${action}">${LABELS[action]}</button></form>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Test billing · Underpass</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 34rem; margin: 12vh auto 0; padding: 0 1.5rem }
button { font: inherit; margin: .25rem 0; padding: .4rem .8rem }
</style>
</head>
<body>
<main>
<h1>Test billing</h1>
${describe(current)
  .map((sentence) => `<p>${sentence}</p>`)
  .join("\n")}
${forms.join("\n")}
<p><a href="/billing">Back to your account</a></p>
</main>
</body>
</html>
`;
}

function listActions(current: SubscriptionRow | null): PortalAction[] {
  if (!current || !isOngoing(current.status)) return [];
  const isPaid = current.status === "active";
  return [
    current.cancelAtPeriodEnd ? "resume" : "cancel",
    ...(isPaid ? (["fail"] as const) : (["pay"] as const)),
    ...(current.status === "past_due" ? (["give_up"] as const) : []),
    "end",
  ];
}

function describe(current: SubscriptionRow | null): string[] {
  if (!current) return ["There is no subscription yet."];
  const { plan, cycle, status, periodEnd, cancelAtPeriodEnd } = current;
  const grace = getGraceEnd(current);
  return [
    `The ${plan} plan, billed ${cycle}: <strong>${status}</strong>.`,
    ...(periodEnd ? [`The current period ends on ${periodEnd.toUTCString()}.`] : []),
    ...(cancelAtPeriodEnd ? ["The subscription ends with the current period."] : []),
    ...(grace ? [`A payment is overdue. The plan remains until ${grace.toUTCString()}.`] : []),
    "This is a test: you are never charged.",
  ];
}
