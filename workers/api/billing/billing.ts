/** /billing: what an organization pays for. Its plan changes when the payment provider says so, never here. */
import {
  Billing,
  CheckoutSession,
  PortalSession,
  StartCheckout,
} from "../../../protocol/schemas/billing.ts";
import { ApiError } from "../../errors.ts";
import type { Purchase } from "../../integrations/payments/provider.ts";
import { PLAN_PRICES } from "../../store/billing/plans.ts";
import { findOrganization } from "../../store/organizations/organizations.ts";
import { findOverLimits } from "../../store/billing/plan-changes.ts";
import { ensureCustomer, listSubscriptions } from "../../store/billing/subscriptions.ts";
import {
  getGraceEnd,
  isOngoing,
  pickCurrentSubscription,
} from "../../store/billing/subscription-rules.ts";
import { allow } from "../guard.ts";
import { jsonResponse, createRouter, route, type ApiContext } from "../route.ts";
import { mockCancel, mockCheckoutUrl, mockPortalUrl } from "./mock-billing.ts";
import { callPayments, billingNotConfigured, getPayments } from "./payments.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** Whoever asks for the same checkout again within this is led to the same one. */
const CHECKOUT_REPEAT_MS = MINUTE_MS;

export const billing = createRouter();

billing.openapi(
  route({
    method: "get",
    path: "/billing",
    summary: "What the organization pays for, and what it has beyond its plan",
    guard: allow("billing:manage"),
    responses: { 200: jsonResponse("As the payment provider has told it.", Billing) },
  }),
  async (c) => c.json(await readBilling(c), 200),
);

billing.openapi(
  route({
    method: "post",
    path: "/billing/checkout-session",
    summary: "Buy a plan",
    description:
      "Whoever pays for a plan already is led to where it is changed, so that nobody pays twice.",
    guard: allow("billing:manage"),
    body: StartCheckout,
    responses: { 200: jsonResponse("To be opened in a browser.", CheckoutSession) },
    failures: ["billing_not_configured", "unavailable"],
  }),
  async (c) => {
    const { plan, billing_cycle: cycle } = c.req.valid("json");
    const purchase = { plan, cycle };
    switch (c.var.config.BILLING_MODE) {
      case "none":
        throw billingNotConfigured();
      case "mock":
        return c.json({ checkout_url: await mockCheckoutUrl(c, purchase) }, 200);
      case "payments":
        return c.json({ checkout_url: await callPayments(c, checkoutUrl(c, purchase)) }, 200);
    }
  },
);

billing.openapi(
  route({
    method: "post",
    path: "/billing/portal",
    summary: "See invoices, change the way of paying, cancel",
    guard: allow("billing:manage"),
    responses: { 200: jsonResponse("To be opened in a browser.", PortalSession) },
    failures: ["billing_not_configured", "unavailable"],
  }),
  async (c) => {
    switch (c.var.config.BILLING_MODE) {
      case "none":
        throw billingNotConfigured();
      case "mock":
        return c.json({ portal_url: await mockPortalUrl(c) }, 200);
      case "payments":
        return c.json({ portal_url: await callPayments(c, portalUrl(c)) }, 200);
    }
  },
);

billing.openapi(
  route({
    method: "post",
    path: "/billing/cancel",
    summary: "End the plan at once, in a rehearsal",
    description: "Only where `BILLING_MODE` is `mock`; in `payments` the portal cancels.",
    guard: allow("billing:manage"),
    responses: { 200: jsonResponse("Ended, or there was none.", Billing) },
    failures: ["method_not_allowed"],
  }),
  async (c) => {
    switch (c.var.config.BILLING_MODE) {
      case "none":
        throw cancelNotAllowed("This server has no billing: there is nothing to cancel.");
      case "mock":
        await mockCancel(c);
        return c.json(await readBilling(c), 200);
      case "payments":
        throw cancelNotAllowed("Cancel in the portal: POST /billing/portal.");
    }
  },
);

function cancelNotAllowed(message: string): ApiError {
  return new ApiError("method_not_allowed", message, { headers: { Allow: "" } });
}

async function checkoutUrl(c: ApiContext, purchase: Purchase): Promise<string> {
  const { orgId } = c.var.principal;
  const payments = await getPayments(c);
  const customerId = await getCustomerId(c);
  const living = (await listSubscriptions(c.var.db, orgId)).filter(
    ({ status, source }) => source === "payments" && isOngoing(status),
  );
  const current = pickCurrentSubscription(living);
  if (!current) {
    return payments.checkoutUrl({ id: customerId, orgId }, purchase, toIdempotencyKey(new Date()));
  }
  const isSame = current.plan === purchase.plan && current.cycle === purchase.cycle;
  const isPaid = current.status === "active" || current.status === "trialing";
  return isPaid && !isSame
    ? payments.changeUrl(customerId, current.id, purchase)
    : payments.portalUrl(customerId);
}

async function portalUrl(c: ApiContext): Promise<string> {
  const payments = await getPayments(c);
  return payments.portalUrl(await getCustomerId(c));
}

async function getCustomerId(c: ApiContext): Promise<string> {
  const { orgId, userId, email } = c.var.principal;
  const payments = await getPayments(c);
  return ensureCustomer(c.var.db, { orgId, source: "payments" }, () =>
    payments.createCustomer(orgId, { userId, email }, toIdempotencyKey(new Date())),
  );
}

/** Clicks of the same minute or so are one attempt; a later one may differ, as an address that was changed. */
function toIdempotencyKey(now: Date): string {
  return String(Math.floor(now.getTime() / CHECKOUT_REPEAT_MS));
}

async function readBilling(c: ApiContext): Promise<Billing> {
  const { config, db, principal } = c.var;
  const { orgId } = principal;
  const rows = await listSubscriptions(db, orgId);
  const counts = pickCurrentSubscription(rows);
  // Canceling changes it after the guard has looked.
  const plan = (await findOrganization(db, orgId))?.plan ?? principal.plan;
  const standing = { ...principal, plan };
  return {
    mode: config.BILLING_MODE,
    plan,
    status: counts?.status ?? null,
    cycle: counts?.cycle ?? null,
    currentPeriodEnd: counts?.periodEnd?.toISOString() ?? null,
    graceEndsAt: (counts && getGraceEnd(counts))?.toISOString() ?? null,
    cancelAtPeriodEnd: counts?.cancelAtPeriodEnd ?? false,
    overLimits: await findOverLimits(db.query, orgId, standing, config.HOSTED),
    prices: PLAN_PRICES,
  };
}
