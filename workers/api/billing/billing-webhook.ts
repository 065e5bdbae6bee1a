/**
 * POST /billing/webhook: what the payment provider tells. It tells everything at least once and in any
 * order, and again later whatever was not answered with 200: so that is said of what was kept, and of what
 * repeating would not help.
 */
import { Ok } from "../../../protocol/schemas/scalars.ts";
import { planRules } from "../../jobs/plan-notices.ts";
import { ApiError } from "../../errors.ts";
import { log } from "../../../shared/log.ts";
import type { BillingEvent } from "../../integrations/payments/events.ts";
import type { Payments } from "../../integrations/payments/provider.ts";
import {
  findSubscriptionVersion,
  applyEvent,
  type EventOutcome,
} from "../../store/billing/subscriptions.ts";
import type { SubscriptionUpdate } from "../../store/billing/subscription-rules.ts";
import { jsonResponse, createRouter, route, type ApiContext } from "../route.ts";
import { callPayments, billingNotConfigured, getPayments } from "./payments.ts";

/** How often the provider is asked because of one event, while others of the same subscription come. */
const PAYMENTS_ASKS_MAX = 3;

export const billingWebhook = createRouter();

/** What providers of the kind that we know sign with. */
const SIGNATURE_HEADER = "stripe-signature";

billingWebhook.openapi(
  route({
    method: "post",
    path: "/billing/webhook",
    summary: "For the payment provider: what has happened there",
    description: `The body is an event, signed in \`${SIGNATURE_HEADER}\` (\`t=…,v1=…\`) no longer than five minutes ago.`,
    responses: { 200: jsonResponse("Heard. It need not be told again.", Ok) },
    failures: ["unauthorized", "billing_not_configured", "payload_too_large", "unavailable"],
  }),
  async (c) => {
    if (c.var.config.BILLING_MODE !== "payments") throw billingNotConfigured();
    const payments = await getPayments(c);
    const signature = c.req.header(SIGNATURE_HEADER) ?? "";
    const event = await payments.verifyEvent(await c.req.text(), signature);
    if (!event) throw new ApiError("unauthorized", "This is not signed by the payment provider.");
    await handleEvent(c, payments, event);
    return c.json({ ok: true as const }, 200);
  },
);

async function handleEvent(c: ApiContext, payments: Payments, event: BillingEvent): Promise<void> {
  const { requestId } = c.var;
  switch (event.kind) {
    case "other":
      return;
    case "unreadable":
      log("error", "billing_event_unreadable", { requestId });
      return;
    case "subscription": {
      const outcome = await applyProviderEvent(c, payments, event);
      logOutcome(outcome, { requestId, eventId: event.id, subscriptionId: event.subscriptionId });
    }
  }
}

type SubscriptionEvent = Extract<BillingEvent, { kind: "subscription" }>;

async function applyProviderEvent(
  c: ApiContext,
  payments: Payments,
  { id, type, at, snapshot, subscriptionId }: SubscriptionEvent,
): Promise<EventOutcome | { kind: "unknown_subscription" }> {
  const { config, db } = c.var;
  const context = { source: "payments", rules: planRules(config) } as const;
  const apply = (update: Omit<SubscriptionUpdate, "occurredAt">) =>
    applyEvent(db, { id, type }, { ...update, occurredAt: at }, context);
  if (snapshot) {
    const outcome = await apply({ snapshot, failedAt: at, fetched: null });
    if (outcome.kind !== "inconclusive") return outcome;
  }
  const isAboutFailure = type === "invoice.payment_failed" || snapshot?.status === "past_due";
  for (let attempt = 1; attempt <= PAYMENTS_ASKS_MAX; attempt++) {
    const basedOn = await findSubscriptionVersion(db, subscriptionId);
    const fetched = { at: new Date(), basedOn };
    // Where the provider itself does not know the subscription, the event's own snapshot has to do.
    const found = (await callPayments(c, payments.findSubscription(subscriptionId))) ?? snapshot;
    if (!found) return { kind: "unknown_subscription" };
    // An event about something else does not say when the payment failed that the provider's answer contains.
    const failedAt = isAboutFailure ? at : fetched.at;
    const outcome = await apply({ snapshot: found, failedAt, fetched });
    if (outcome.kind !== "inconclusive") return outcome;
  }
  throw new ApiError(
    "unavailable",
    "Newer events of this subscription keep arriving. Send this event again later.",
  );
}

function logOutcome(
  outcome: EventOutcome | { kind: "unknown_subscription" },
  details: Record<string, unknown>,
): void {
  switch (outcome.kind) {
    case "unknown_customer":
    case "unknown_subscription":
      log("warn", `billing_${outcome.kind}`, details);
      return;
    case "unknown_price":
      log("error", "billing_unknown_price", details);
      return;
    case "applied":
      if (outcome.problem) log("error", outcome.problem, { ...details, orgId: outcome.orgId });
      return;
    case "repeated":
    case "older":
    case "inconclusive":
      return;
  }
}
