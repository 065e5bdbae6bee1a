/** /billing: the subscription of an organization. Its plan changes only with events of the payment provider, never here. */
import { PLANS } from "../../../protocol/plans.ts";
import {
  Billing,
  CheckoutSession,
  PortalSession,
  StartCheckout,
} from "../../../protocol/schemas/billing.ts";
import { ApiError } from "../../errors.ts";
import type { Purchase } from "../../integrations/payments/provider.ts";
import { getPlanLimits, PLAN_PRICES } from "../../store/billing/plans.ts";
import { findOrganization } from "../../store/organizations/organizations.ts";
import { findOverLimits } from "../../store/billing/plan-changes.ts";
import { ensureCustomer, listSubscriptions } from "../../store/billing/subscriptions.ts";
import {
  getGraceEnd,
  isOngoing,
  pickCurrentSubscription,
} from "../../store/billing/subscription-rules.ts";
import { allow } from "../guard.ts";
import { createRouter, jsonResponse, route, type ApiContext } from "../route.ts";
import {
  cancelMockSubscriptions,
  createMockCheckoutUrl,
  createMockPortalUrl,
  refuseDowngrade,
} from "./mock-billing.ts";
import { callPayments, billingNotConfigured, getPayments } from "./payments.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** The same checkout that is requested again within this time is the same session of the provider. */
const CHECKOUT_REPEAT_MS = MINUTE_MS;

export const billing = createRouter();

billing.openapi(
  route({
    operationId: "getBilling",
    method: "get",
    path: "/billing",
    summary: "Get the plan and the subscription of the organization",
    guard: allow("billing:manage"),
    responses: {
      200: jsonResponse(
        "The state that the payment provider reported last, and what exceeds the limits of the plan.",
        Billing,
      ),
    },
  }),
  async (c) => c.json(await readBilling(c), 200),
);

billing.openapi(
  route({
    operationId: "startCheckout",
    method: "post",
    path: "/billing/checkout-session",
    summary: "Buy a plan",
    description:
      "An organization that already pays for a plan gets the page where the plan is changed, so that it does not pay twice.",
    guard: allow("billing:manage"),
    body: StartCheckout,
    responses: { 200: jsonResponse("The URL to open in a browser.", CheckoutSession) },
    failures: ["billing_not_configured", "conflict", "unavailable"],
  }),
  async (c) => {
    const { plan, billing_cycle: cycle } = c.req.valid("json");
    const purchase = { plan, cycle };
    switch (c.var.config.BILLING_MODE) {
      case "none":
        throw billingNotConfigured();
      case "mock":
        refuseDowngrade(c.var.principal.plan, purchase);
        return c.json({ checkout_url: await createMockCheckoutUrl(c, purchase) }, 200);
      case "payments":
        return c.json({ checkout_url: await callPayments(c, createCheckoutUrl(c, purchase)) }, 200);
    }
  },
);

billing.openapi(
  route({
    operationId: "openBillingPortal",
    method: "post",
    path: "/billing/portal",
    summary: "Open the billing portal: invoices, payment method, cancellation",
    guard: allow("billing:manage"),
    responses: { 200: jsonResponse("The URL to open in a browser.", PortalSession) },
    failures: ["billing_not_configured", "unavailable"],
  }),
  async (c) => {
    switch (c.var.config.BILLING_MODE) {
      case "none":
        throw billingNotConfigured();
      case "mock":
        return c.json({ portal_url: await createMockPortalUrl(c) }, 200);
      case "payments":
        return c.json({ portal_url: await callPayments(c, createPortalUrl(c)) }, 200);
    }
  },
);

billing.openapi(
  route({
    operationId: "cancelMockSubscription",
    method: "post",
    path: "/billing/cancel",
    summary: "Cancel a mock subscription at once",
    description: "Only when `BILLING_MODE` is `mock`. With `payments`, cancel in the portal.",
    guard: allow("billing:manage"),
    responses: { 200: jsonResponse("Canceled, or there was no subscription.", Billing) },
    failures: ["method_not_allowed"],
  }),
  async (c) => {
    switch (c.var.config.BILLING_MODE) {
      case "none":
        throw cancelNotAllowed(
          "Billing is not configured on this server, so there is nothing to cancel.",
        );
      case "mock":
        await cancelMockSubscriptions(c);
        return c.json(await readBilling(c), 200);
      case "payments":
        throw cancelNotAllowed("Cancel in the billing portal, which POST /billing/portal opens.");
    }
  },
);

/** A list without methods: the runtime does not send a header whose value is empty. */
const NO_METHODS = ",";

function cancelNotAllowed(message: string): ApiError {
  return new ApiError("method_not_allowed", message, { headers: { Allow: NO_METHODS } });
}

async function createCheckoutUrl(c: ApiContext, purchase: Purchase): Promise<string> {
  const { orgId } = c.var.principal;
  const payments = await getPayments(c);
  const customerId = await getCustomerId(c);
  const ongoing = (await listSubscriptions(c.var.db, orgId)).filter(
    ({ status, source }) => source === "payments" && isOngoing(status),
  );
  const current = pickCurrentSubscription(ongoing);
  if (!current) {
    return payments.createCheckoutUrl(
      { id: customerId, orgId },
      purchase,
      toIdempotencyKey(new Date()),
    );
  }
  const isSame = current.plan === purchase.plan && current.cycle === purchase.cycle;
  const isPaid = current.status === "active" || current.status === "trialing";
  return isPaid && !isSame
    ? payments.createPlanChangeUrl(customerId, current.id, purchase)
    : payments.createPortalUrl(customerId);
}

async function createPortalUrl(c: ApiContext): Promise<string> {
  const payments = await getPayments(c);
  return payments.createPortalUrl(await getCustomerId(c));
}

async function getCustomerId(c: ApiContext): Promise<string> {
  const { orgId, userId, email } = c.var.principal;
  const payments = await getPayments(c);
  return ensureCustomer(c.var.db, { orgId, source: "payments" }, () =>
    payments.createCustomer(orgId, { userId, email }, toIdempotencyKey(new Date())),
  );
}

/** Clicks within a minute are one request for the provider. A later click may have other details, such as a changed address. */
function toIdempotencyKey(now: Date): string {
  return String(Math.floor(now.getTime() / CHECKOUT_REPEAT_MS));
}

async function readBilling(c: ApiContext): Promise<Billing> {
  const { config, db, principal } = c.var;
  const { orgId } = principal;
  const rows = await listSubscriptions(db, orgId);
  const current = pickCurrentSubscription(rows);
  // A cancellation has changed the plan after the guard read it.
  const plan = (await findOrganization(db, orgId))?.plan ?? principal.plan;
  const planState = { ...principal, plan };
  return {
    mode: config.BILLING_MODE,
    plan,
    status: current?.status ?? null,
    cycle: current?.cycle ?? null,
    currentPeriodEnd: current?.periodEnd?.toISOString() ?? null,
    graceEndsAt: (current && getGraceEnd(current))?.toISOString() ?? null,
    cancelAtPeriodEnd: current?.cancelAtPeriodEnd ?? false,
    overLimits: await findOverLimits(db.query, orgId, planState, config.HOSTED),
    prices: PLAN_PRICES,
    limits: Object.fromEntries(
      PLANS.map((each) => [each, getPlanLimits(each, config.HOSTED)]),
    ) as Billing["limits"],
  };
}
