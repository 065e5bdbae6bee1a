/**
 * /billing/mock: billing without a payment provider (`BILLING_MODE=mock`). Its checkout and its portal replace those
 * of the provider, and no card is charged. Everything else is the same.
 */
import type { SubscriptionRow } from "../../store/billing/subscription-decision.ts";
import { z } from "zod";
import { BILLING_CYCLES, SELF_SERVICE_PLANS, type Plan } from "../../../protocol/plans.ts";
import { buildPlanRules } from "../../jobs/plan-rules.ts";
import type { Config } from "../../config/config.ts";
import { renderHtmlPage, PAGE_HEADERS, wantsHtml } from "../../html-error-page.ts";
import { ApiError } from "../../errors.ts";
import { encrypt, decrypt } from "../../identity/encryption.ts";
import type { Purchase } from "../../integrations/payments/provider.ts";
import type { Actor } from "../../store/audit.ts";
import { isBetter } from "../../store/billing/plans.ts";
import { findOrganization } from "../../store/organizations/organizations.ts";
import {
  ensureCustomer,
  applyEvent,
  listSubscriptions,
} from "../../store/billing/subscriptions.ts";
import {
  isOngoing,
  pickCurrentSubscription,
  type SubscriptionSnapshot,
} from "../../store/billing/subscription-rules.ts";
import { createRouter, noRoute, notFound, type ApiContext } from "../route.ts";
import { renderMockPortalPage, PORTAL_ACTIONS, type PortalAction } from "./mock-billing-page.ts";
import { HOUR_MS } from "../../../shared/time.ts";

/** The lifetime of the links to the mock checkout and the mock portal. */
const MOCK_LINK_MAX_MS = HOUR_MS;

export const mockBilling = createRouter();

const CHECKOUT = "/billing/mock/checkout";
const PORTAL = "/billing/mock/portal";

const Link = z.object({ id: z.uuid(), orgId: z.uuid(), userId: z.uuid(), endsAtMs: z.number() });
const CheckoutLink = Link.extend({
  plan: z.enum(SELF_SERVICE_PLANS),
  cycle: z.enum(BILLING_CYCLES),
});

export function createMockCheckoutUrl(c: ApiContext, purchase: Purchase): Promise<string> {
  return createLink(c, CHECKOUT, purchase);
}

export function createMockPortalUrl(c: ApiContext): Promise<string> {
  return createLink(c, PORTAL, {});
}

/** A purchase adds features. @throws ApiError when the current plan is better than the purchased one. */
export function refuseDowngrade(current: Plan, { plan }: Pick<Purchase, "plan">): void {
  if (!isBetter(current, plan)) return;
  throw new ApiError(
    "conflict",
    `The organization has the plan ${current}, which includes more than ${plan}. Cancel it first.`,
  );
}

/** Cancels every ongoing mock subscription at once. */
export async function cancelMockSubscriptions(c: ApiContext): Promise<void> {
  const { orgId, userId } = c.var.principal;
  for (const row of await listOngoingSubscriptions(c, orgId)) {
    await applyMockSnapshot(c, { orgId, userId }, { ...toSnapshot(row), status: "canceled" });
  }
}

// ── Pages for browsers ──

/** Opening the link is the payment, which is made only once. */
mockBilling.get(CHECKOUT, async (c) => {
  const link = await openLink(c, CHECKOUT, CheckoutLink);
  const { orgId, plan, cycle } = link;
  const org = await findOrganization(c.var.db, orgId);
  if (!org) throw notFound("organization");
  refuseDowngrade(org.plan, link);
  const current = pickCurrentSubscription(await listOngoingSubscriptions(c, orgId));
  const outcome = await applyMockSnapshot(
    c,
    link,
    {
      id: current?.id ?? `mock_sub_${link.id}`,
      customerId: toCustomerId(orgId),
      status: "active",
      purchase: { plan, cycle },
      periodEnd: getPeriodEnd(new Date(), cycle),
      cancelAtPeriodEnd: false,
    },
    link.id,
  );
  if (outcome.kind === "repeated") throw linkExpired();
  if (!wantsHtml(c.req.raw)) return c.json({ plan, billing_cycle: cycle, status: "active" });
  const page = renderHtmlPage(200, "mock", {
    title: `You now have the ${plan} plan`,
    message: "This was a test checkout. You have not been charged.",
    action: { text: "Back to your account", href: "/billing" },
  });
  return c.body(page, 200, { ...PAGE_HEADERS, ...NO_REFERRER });
});

mockBilling.get(PORTAL, async (c) => {
  const { orgId } = await openLink(c, PORTAL, Link);
  const rows = (await listSubscriptions(c.var.db, orgId)).filter(isMock);
  return c.body(renderMockPortalPage(pickCurrentSubscription(rows)), 200, {
    ...PAGE_HEADERS,
    ...NO_REFERRER,
  });
});

mockBilling.post(PORTAL, async (c) => {
  const link = await openLink(c, PORTAL, Link);
  const { action } = await c.req.parseBody();
  const asked = PORTAL_ACTIONS.find((known) => known === action);
  const current = pickCurrentSubscription(await listOngoingSubscriptions(c, link.orgId));
  if (!asked || !current)
    throw new ApiError(
      "invalid_request",
      "The subscription does not allow this action now. Go back and choose another one.",
    );
  await applyMockSnapshot(c, link, { ...toSnapshot(current), ...OUTCOMES[asked] });
  return c.redirect(c.req.path + new URL(c.req.url).search, 303);
});

const OUTCOMES: Record<PortalAction, Partial<SubscriptionSnapshot>> = {
  cancel: { cancelAtPeriodEnd: true },
  resume: { cancelAtPeriodEnd: false },
  end: { status: "canceled" },
  fail: { status: "past_due" },
  pay: { status: "active" },
  give_up: { status: "unpaid" },
};

/** The URL alone authorizes the payment, so it must not leak in a Referer. */
const NO_REFERRER = { "Referrer-Policy": "no-referrer" };

// ── Snapshots and links ──

/** Applies a snapshot as if the provider had sent it. */
async function applyMockSnapshot(
  c: ApiContext,
  { orgId, userId }: { orgId: string; userId: string },
  snapshot: SubscriptionSnapshot,
  eventId: string = crypto.randomUUID(),
) {
  const { config, db, address } = c.var;
  await ensureCustomer(db, { orgId, source: "mock" }, () => Promise.resolve(toCustomerId(orgId)));
  const now = new Date();
  const actor: Actor = { orgId, userId, ip: address };
  const update = { snapshot, occurredAt: now, failedAt: now, fetched: null };
  const event = { id: `mock_${eventId}`, type: "mock" };
  return applyEvent(db, event, update, { source: "mock", rules: buildPlanRules(config), actor });
}

function toCustomerId(orgId: string): string {
  return `mock_cus_${orgId}`;
}

async function listOngoingSubscriptions(c: ApiContext, orgId: string): Promise<SubscriptionRow[]> {
  const rows = await listSubscriptions(c.var.db, orgId);
  return rows.filter((row) => isMock(row) && isOngoing(row.status));
}

function isMock({ source }: SubscriptionRow): boolean {
  return source === "mock";
}

function toSnapshot(row: SubscriptionRow): SubscriptionSnapshot {
  const { id, orgId, status, plan, cycle, periodEnd, cancelAtPeriodEnd } = row;
  const purchase = { plan, cycle };
  return { id, customerId: toCustomerId(orgId), status, purchase, periodEnd, cancelAtPeriodEnd };
}

function getPeriodEnd(start: Date, cycle: Purchase["cycle"]): Date {
  const end = new Date(start);
  if (cycle === "yearly") end.setUTCFullYear(end.getUTCFullYear() + 1);
  else end.setUTCMonth(end.getUTCMonth() + 1);
  return end;
}

async function createLink(c: ApiContext, path: string, about: object): Promise<string> {
  const { config, principal } = c.var;
  const { orgId, userId } = principal;
  const endsAtMs = Date.now() + MOCK_LINK_MAX_MS;
  const link = { id: crypto.randomUUID(), orgId, userId, endsAtMs, ...about };
  const url = new URL(path, config.publicOrigin);
  url.searchParams.set("token", await encrypt(config, path, JSON.stringify(link)));
  return url.href;
}

/** @throws ApiError unless the link is valid and has not expired. */
async function openLink<About extends z.infer<typeof Link>>(
  c: ApiContext,
  path: string,
  schema: z.ZodType<About>,
): Promise<About> {
  requireMock(c.var.config);
  const token = c.req.query("token") ?? "";
  const text = await decrypt(c.var.config, path, token).catch(() => null);
  if (text === null) throw new ApiError("not_found", "This link is not valid.");
  const link = schema.parse(JSON.parse(text));
  if (link.endsAtMs <= Date.now()) throw linkExpired();
  return link;
}

function requireMock({ BILLING_MODE: mode }: Config): void {
  if (mode !== "mock") throw noRoute();
}

function linkExpired(): ApiError {
  return new ApiError(
    "expired",
    "This link has already been used, or it has expired. Request a new one.",
  );
}
