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
      const heard = await applyProviderEvent(c, payments, event);
      logOutcome(heard, { requestId, eventId: event.id, subscriptionId: event.subscriptionId });
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
  const hearing = { source: "payments", rules: planRules(config) } as const;
  const hearOf = (news: Omit<SubscriptionUpdate, "at">) =>
    applyEvent(db, { id, type }, { ...news, occurredAt }, hearing);
  if (snapshot) {
    const heard = await hearOf({ snapshot, failedAt: at, fetched: null });
    if (heard.kind !== "doubtful") return heard;
  }
  const tellsOfFailure = type === "invoice.payment_failed" || snapshot?.status === "past_due";
  for (let asks = 1; asks <= PAYMENTS_ASKS_MAX; asks++) {
    const knowing = await findSubscriptionVersion(db, subscriptionId);
    const asked = { at: new Date(), knowing };
    // Where the provider itself does not know it, what it told last has to do.
    const found = (await callPayments(c, payments.findSubscription(subscriptionId))) ?? snapshot;
    if (!found) return { kind: "unknown_subscription" };
    // An event of something else says nothing of when the payment failed that its answer tells of.
    const failedAt = tellsOfFailure ? at : asked.at;
    const heard = await hearOf({ snapshot: found, failedAt, fetched });
    if (heard.kind !== "doubtful") return heard;
  }
  throw new ApiError("unavailable", "More is told of this subscription. Tell this again later.");
}

function logOutcome(
  heard: EventOutcome | { kind: "unknown_subscription" },
  details: Record<string, unknown>,
): void {
  switch (heard.kind) {
    case "unknown_customer":
    case "unknown_subscription":
      log("warn", `billing_${heard.kind}`, details);
      return;
    case "unknown_price":
      log("error", "billing_unknown_price", details);
      return;
    case "taken":
      if (heard.problem) log("error", heard.problem, { ...details, orgId: heard.orgId });
      return;
    case "repeated":
    case "older":
    case "doubtful":
      return;
  }
}
