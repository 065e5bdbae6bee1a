/**
 * Rows of subscriptions, and the plan that follows from them. Events of one organization take turns by locking the row
 * of its customer.
 */
import { and, eq, lt, lte, sql } from "drizzle-orm";
import { LAPSED_BATCH_ROWS, PAYMENT_GRACE_MS } from "../../limits.ts";
import { isOngoing, type SubscriptionUpdate, type Version } from "./subscription-rules.ts";
import {
  decideUpdate,
  decidePlan,
  type BillingProblem,
  type SubscriptionRow,
  type SubscriptionValues,
} from "./subscription-decision.ts";
import type { SelfServicePlan } from "../../../protocol/plans.ts";
import { ago } from "../clock.ts";
import type { Actor } from "../audit.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { changePlan, type PlanReason, type PlanRules } from "./plan-changes.ts";
import { mailOwners } from "../organizations/memberships.ts";
import { billingCustomers, billingEvents, subscriptions } from "../tables/billing.ts";
import { organizations, type OrganizationRow } from "../tables/organizations.ts";
import { DAY_MS } from "../../../shared/time.ts";

/** The provider repeats an event for days; its id is kept for longer, so that it is applied once. */
const BILLING_EVENT_KEEP_MS = 90 * DAY_MS;

type Source = SubscriptionRow["source"];

/** `inconclusive`: nothing was changed, and the subscription has to be fetched from the provider. */
export type EventOutcome =
  | { kind: "applied"; orgId: string; problem: BillingProblem | null }
  | { kind: "repeated" | "older" | "inconclusive" | "unknown_customer" | "unknown_price" };

export function listSubscriptions(
  { query }: Pick<Database, "query">,
  orgId: string,
): Promise<SubscriptionRow[]> {
  return query.select().from(subscriptions).where(eq(subscriptions.orgId, orgId));
}

/** @returns null for a subscription that is not known yet. */
export async function findSubscriptionVersion(
  { query }: Pick<Database, "query">,
  id: string,
): Promise<Version | null> {
  const { eventAt, askedAt } = subscriptions;
  const rows = await query
    .select({ eventAt, askedAt })
    .from(subscriptions)
    .where(eq(subscriptions.id, id));
  return rows[0] ?? null;
}

/**
 * Nothing is locked while the provider is called, and it is not called for a customer that is known.
 * @param create creates one at the provider; of concurrent callers all get the one that was stored first.
 */
export async function ensureCustomer(
  { query }: Pick<Database, "query">,
  { orgId, source }: { orgId: string; source: Source },
  create: () => Promise<string>,
): Promise<string> {
  const { customerId } = billingCustomers;
  const [known] = await query
    .select({ customerId })
    .from(billingCustomers)
    .where(and(eq(billingCustomers.orgId, orgId), eq(billingCustomers.source, source)));
  if (known?.customerId) return known.customerId;
  const created = await create();
  const [stored] = await query
    .insert(billingCustomers)
    .values({ orgId, source, customerId: created })
    .onConflictDoUpdate({
      target: [billingCustomers.orgId, billingCustomers.source],
      set: { customerId: sql`coalesce(${customerId}, excluded.customer_id)` },
    })
    .returning({ customerId });
  return stored?.customerId ?? created;
}

interface EventContext {
  source: Source;
  rules: PlanRules;
  /** The member who caused it; left out for events of the provider. */
  actor?: Actor;
}

const NO_ACTOR: Actor = { orgId: null, userId: null, ip: null };

/** Applies an event of the provider once. One that changed nothing may be sent again. */
export async function applyEvent(
  db: Database,
  event: { id: string; type: string },
  update: SubscriptionUpdate,
  { source, rules, actor = NO_ACTOR }: EventContext,
): Promise<EventOutcome> {
  return db.transaction(async (change) => {
    const inserted = await change.tx
      .insert(billingEvents)
      .values(event)
      .onConflictDoNothing()
      .returning({ id: billingEvents.id });
    if (inserted.length === 0) return { kind: "repeated" };
    const outcome = await applyUpdate(change, update, { source, rules, actor });
    const isDone = outcome.kind === "applied" || outcome.kind === "older";
    return isDone ? outcome : change.rollback(outcome);
  });
}

async function applyUpdate(
  change: UnitOfWork,
  update: SubscriptionUpdate,
  { source, rules, actor }: Required<EventContext>,
): Promise<EventOutcome> {
  const { tx } = change;
  const { id, customerId } = update.snapshot;
  const orgId = await lockCustomer(tx, customerId, source);
  if (orgId === null) return { kind: "unknown_customer" };
  const [org] = await tx
    .select()
    .from(organizations)
    .where(eq(organizations.id, orgId))
    .for("no key update");
  const rows = await tx.select().from(subscriptions).where(eq(subscriptions.orgId, orgId));
  const isDeleted = !org || org.deletedAt !== null;
  const decision = decideUpdate(rows, update, { isDeleted, now: new Date() });
  switch (decision.kind) {
    case "inconclusive":
    case "unknown_price":
      return { kind: decision.kind };
    case "older":
      if (decision.overdue) {
        await tx.update(subscriptions).set(decision.overdue).where(eq(subscriptions.id, id));
      }
      return { kind: "older" };
    case "applied": {
      const { values, plan, graceEndsAt } = decision;
      await tx
        .insert(subscriptions)
        .values({ id, orgId, source, ...values })
        .onConflictDoUpdate({ target: subscriptions.id, set: values });
      if (decision.isChange) auditChange(change, { ...actor, orgId }, id, values);
      if (decision.endsSubscription) endSubscription(change, { id, source });
      if (org && plan) await switchPlan(change, org, plan, rules);
      if (org && graceEndsAt) {
        const payment = { organization: org.name, plan: values.plan, graceEndsAt };
        await mailOwners(change, orgId, (to) => rules.notices.overdue(to, payment));
      }
      return { kind: "applied", orgId, problem: decision.problem };
    }
  }
}

function auditChange(
  { audit }: UnitOfWork,
  actor: Actor,
  id: string,
  { status, plan, cycle, cancelAtPeriodEnd }: SubscriptionValues,
): void {
  audit(actor, "subscription_changed", id, { status, plan, cycle, cancelAtPeriodEnd });
}

/** Ends the plans whose grace period has passed. @returns how many were found; after a full batch there may be more. */
export async function endOverduePlans(db: Database, rules: PlanRules): Promise<number> {
  const isLapsed = and(
    eq(subscriptions.isEntitling, true),
    eq(subscriptions.status, "past_due"),
    lte(subscriptions.overdueSince, ago(PAYMENT_GRACE_MS)),
  );
  const lapsed = await db.query
    .selectDistinct({ orgId: subscriptions.orgId, source: subscriptions.source })
    .from(subscriptions)
    .where(isLapsed)
    .limit(LAPSED_BATCH_ROWS);
  for (const { orgId, source } of lapsed) {
    await db.transaction(async (change) => {
      const { tx } = change;
      const which = and(eq(billingCustomers.orgId, orgId), eq(billingCustomers.source, source));
      await tx.select().from(billingCustomers).where(which).for("update");
      const [org] = await tx
        .select()
        .from(organizations)
        .where(eq(organizations.id, orgId))
        .for("no key update");
      const before = await tx.select().from(subscriptions).where(eq(subscriptions.orgId, orgId));
      await tx
        .update(subscriptions)
        .set({ isEntitling: false })
        .where(and(eq(subscriptions.orgId, orgId), isLapsed));
      const after = await tx.select().from(subscriptions).where(eq(subscriptions.orgId, orgId));
      if (!org || org.deletedAt) return;
      const plan = decidePlan(before, after, "payment_overdue");
      if (plan) await switchPlan(change, org, plan, rules);
    });
  }
  return lapsed.length;
}

async function switchPlan(
  change: UnitOfWork,
  org: OrganizationRow,
  { paid, reason }: { paid: SelfServicePlan | null; reason: PlanReason },
  rules: PlanRules,
): Promise<void> {
  await changePlan(change, org, { plan: paid ?? rules.unpaidPlan, reason }, rules);
}

/** Before an organization is deleted: its owner is not charged afterwards. */
export async function endSubscriptions(change: UnitOfWork, orgId: string): Promise<void> {
  const rows = await change.tx.select().from(subscriptions).where(eq(subscriptions.orgId, orgId));
  for (const row of rows) if (isOngoing(row.status)) endSubscription(change, row);
}

function endSubscription(
  { enqueue }: UnitOfWork,
  { id, source }: Pick<SubscriptionRow, "id" | "source">,
): void {
  if (source === "payments") enqueue({ kind: "subscription_end", payload: { subscriptionId: id } });
}

async function lockCustomer(
  tx: Transaction,
  customerId: string,
  source: Source,
): Promise<string | null> {
  const [customer] = await tx
    .select({ orgId: billingCustomers.orgId })
    .from(billingCustomers)
    .where(and(eq(billingCustomers.customerId, customerId), eq(billingCustomers.source, source)))
    .for("update");
  return customer?.orgId ?? null;
}

/** For the scheduled job. */
export async function deleteOldBillingEvents({ query }: Pick<Database, "query">): Promise<void> {
  const isOld = lt(billingEvents.receivedAt, ago(BILLING_EVENT_KEEP_MS));
  await query.delete(billingEvents).where(isOld);
}
