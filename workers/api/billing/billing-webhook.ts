/**
 * POST /billing/webhook: events of the payment provider. It sends every event at least once and in any order, and
 * again later when the response was not 200. So 200 means that the event was stored, or that sending it again would
 * not help.
 */
import { Ok } from "../../../protocol/schemas/scalars.ts";
import { buildPlanRules } from "../../jobs/plan-rules.ts";
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
import { createRouter, jsonResponse, route, type ApiContext } from "../route.ts";
import { callPayments, billingNotConfigured, getPayments } from "./payments.ts";

/** How often the provider is queried for one event while other events of the same subscription arrive. */
const PAYMENTS_QUERIES_MAX = 3;

export const billingWebhook = createRouter();

/** The header with the signature of the supported provider. */
const SIGNATURE_HEADER = "stripe-signature";

billingWebhook.openapi(
  route({
    operationId: "receiveBillingEvent",
    method: "post",
    path: "/billing/webhook",
    summary: "Deliver an event of the payment provider",
    description: `The body is an event, signed in \`${SIGNATURE_HEADER}\` (\`t=…,v1=…\`) no longer than five minutes ago.`,
    rawBody: "application/json",
    responses: { 200: jsonResponse("Processed. The event need not be sent again.", Ok) },
    failures: ["unauthorized", "billing_not_configured", "unavailable"],
  }),
  async (c) => {
    if (c.var.config.BILLING_MODE !== "payments") throw billingNotConfigured();
    const payments = await getPayments(c);
    const signature = c.req.header(SIGNATURE_HEADER) ?? "";
    const event = await payments.verifyEvent(await c.req.text(), signature);
    if (!event) throw invalidSignature();
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
  const context = { source: "payments", rules: buildPlanRules(config) } as const;
  const apply = (update: Omit<SubscriptionUpdate, "occurredAt">) =>
    applyEvent(db, { id, type }, { ...update, occurredAt: at }, context);
  if (snapshot) {
    const outcome = await apply({ snapshot, failedAt: at, fetched: null });
    if (outcome.kind !== "inconclusive") return outcome;
  }
  const isAboutFailure = type === "invoice.payment_failed" || snapshot?.status === "past_due";
  for (let attempt = 1; attempt <= PAYMENTS_QUERIES_MAX; attempt++) {
    const basedOn = await findSubscriptionVersion(db, subscriptionId);
    const fetched = { at: new Date(), basedOn };
    // Where the provider itself does not know the subscription, the event's own snapshot has to do.
    const found = (await callPayments(c, payments.findSubscription(subscriptionId))) ?? snapshot;
    if (!found) return { kind: "unknown_subscription" };
    // Only an event about the failure says when the payment failed. For others, the time of the query has to do.
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

function invalidSignature(): ApiError {
  return new ApiError("unauthorized", "The event has no valid signature of the payment provider.");
}
