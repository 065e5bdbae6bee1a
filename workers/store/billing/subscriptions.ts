/**
 * Subscriptions' rows, and what follows from them for the plan. Everything that is heard of one organization
 * takes turns on the row of its customer.
 */
import { and, eq, lt, lte, sql } from "drizzle-orm";
import { LAPSED_BATCH_ROWS, PAYMENT_GRACE_MS } from "../../limits.ts";
import {
  graceEndOf,
  isEntitling,
  isLiving,
  judgeNews,
  overdueAfter,
  planPaidFor,
  type News,
  type Version,
} from "./subscription-rules.ts";
import type { Actor } from "../audit.ts";
import type { Change, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { changePlan, listOwners, type PlanReason, type PlanRules } from "./plan-changes.ts";
import { billingCustomers, billingEvents, subscriptions } from "../tables/billing.ts";
import { organizations } from "../tables/organizations.ts";

/** The provider repeats an event for days; by then it is remembered that it was heard. */
const BILLING_EVENT_KEEP_MS = 90 * 24 * 3600_000;

export type SubscriptionRow = typeof subscriptions.$inferSelect;
export type Source = SubscriptionRow["source"];

/** What somebody has to look after: money that has to be given back. */
export type Trouble = "paid_twice" | "paid_for_deleted";

/** What came of news. `doubtful`: nothing was changed, the provider has to be asked. */
export type Heard =
  | { kind: "taken"; orgId: string; trouble: Trouble | null }
  | { kind: "repeated" | "older" | "doubtful" | "unknown_customer" | "unknown_price" };

export function listSubscriptions(
  { query }: Pick<Database, "query">,
  orgId: string,
): Promise<SubscriptionRow[]> {
  return query.select().from(subscriptions).where(eq(subscriptions.orgId, orgId));
}

/** @returns null when nothing was heard of it. */
export async function findVersion(
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
 * Nothing is locked while the provider is asked, and nothing at all where the customer is known.
 * @param create asks the provider for one; of those who come at once the first that is kept is everybody's.
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
  const [kept] = await query
    .insert(billingCustomers)
    .values({ orgId, source, customerId: created })
    .onConflictDoUpdate({
      target: [billingCustomers.orgId, billingCustomers.source],
      set: { customerId: sql`coalesce(${customerId}, excluded.customer_id)` },
    })
    .returning({ customerId });
  return kept?.customerId ?? created;
}

export interface Hearing {
  source: Source;
  rules: PlanRules;
  /** Who did it. Nobody, where the provider tells. */
  actor?: Actor;
}

const NOBODY: Actor = { orgId: null, userId: null, ip: null };

/** An event of the provider, once, however often it comes. One that came to nothing may come again. */
export async function hear(
  db: Database,
  event: { id: string; type: string },
  news: News,
  { source, rules, actor = NOBODY }: Hearing,
): Promise<Heard> {
  return db.transaction(async (change) => {
    const { tx, rollback } = change;
    const fresh = await tx
      .insert(billingEvents)
      .values(event)
      .onConflictDoNothing()
      .returning({ id: billingEvents.id });
    if (fresh.length === 0) return { kind: "repeated" };
    const heard = await takeNews(change, news, { source, rules, actor });
    return heard.kind === "taken" || heard.kind === "older" ? heard : rollback(heard);
  });
}

async function takeNews(
  change: Change,
  news: News,
  { source, rules, actor }: Required<Hearing>,
): Promise<Heard> {
  const { tx, enqueue, audit } = change;
  const orgId = await lockCustomer(tx, news.snapshot.customerId, source);
  if (orgId === null) return { kind: "unknown_customer" };
  const [org] = await tx
    .select()
    .from(organizations)
    .where(eq(organizations.id, orgId))
    .for("no key update");
  const rows = await tx.select().from(subscriptions).where(eq(subscriptions.orgId, orgId));
  const { id, status, periodEnd, cancelAtPeriodEnd } = news.snapshot;
  const known = rows.find((row) => row.id === id) ?? null;
  // A price that is not among the settings any more is still what was bought.
  const bought = news.snapshot.bought ?? known;
  if (bought === null) return { kind: "unknown_price" };

  const verdict = judgeNews(known, news);
  if (verdict === "doubtful") return { kind: "doubtful" };
  const overdue = overdueAfter(known, news, verdict);
  if (verdict === "older") {
    if (known) await tx.update(subscriptions).set(overdue).where(eq(subscriptions.id, id));
    return { kind: "older" };
  }
  const values = {
    status,
    plan: bought.plan,
    cycle: bought.cycle,
    periodEnd,
    cancelAtPeriodEnd,
    eventAt: known && known.eventAt > news.at ? known.eventAt : news.at,
    askedAt: news.asked?.at ?? known?.askedAt ?? null,
    ...overdue,
    isEntitling: isEntitling({ status, ...overdue }, new Date()),
  };
  const [row] = await tx
    .insert(subscriptions)
    .values({ id, orgId, source, ...values })
    .onConflictDoUpdate({ target: subscriptions.id, set: values })
    .returning();
  if (!known || hasChanged(known, row!)) {
    const metadata = { status, plan: row!.plan, cycle: row!.cycle, cancelAtPeriodEnd };
    audit({
      ...actor,
      orgId,
      action: "subscription_changed",
      resourceType: "subscription",
      resourceId: id,
      metadata,
    });
  }
  if (!org || org.deletedAt) {
    // It was paid for while, or after, the organization was deleted.
    if (isLiving(status)) endSubscription(change, row!);
    const isPaidNow = row!.isEntitling && !known?.isEntitling;
    return { kind: "taken", orgId, trouble: isPaidNow ? "paid_for_deleted" : null };
  }
  const others = rows.filter((other) => other.id !== id);
  await settlePlan(
    change,
    org,
    { before: rows, after: [...others, row!], reason: reasonOf(row!) },
    rules,
  );
  const graceEndsAt = graceEndOf(row!);
  if (known?.status !== "past_due" && row!.isEntitling && graceEndsAt) {
    const payment = { organization: org.name, plan: row!.plan, graceEndsAt };
    for (const email of await listOwners(tx, orgId)) {
      enqueue(await rules.notices.overdue(email, payment));
    }
  }
  const isPaidTwice = row!.isEntitling && others.some((other) => other.isEntitling);
  return { kind: "taken", orgId, trouble: isPaidTwice ? "paid_twice" : null };
}

/** Whose grace is over by now. @returns how many were found; a full batch may have left some. */
export async function lapseOverdue(db: Database, rules: PlanRules): Promise<number> {
  const since = sql`now() - ${PAYMENT_GRACE_MS} * interval '1 millisecond'`;
  const isLapsed = and(
    eq(subscriptions.isEntitling, true),
    eq(subscriptions.status, "past_due"),
    lte(subscriptions.overdueSince, since),
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
      await settlePlan(change, org, { before, after, reason: "payment_overdue" }, rules);
    });
  }
  return lapsed.length;
}

/** A plan that nobody pays for, such as one that the operator gave, stays until something that is paid for changes. */
async function settlePlan(
  change: Change,
  org: typeof organizations.$inferSelect,
  {
    before,
    after,
    reason,
  }: { before: SubscriptionRow[]; after: SubscriptionRow[]; reason: PlanReason },
  rules: PlanRules,
): Promise<void> {
  const [paidBefore, paid] = [planPaidFor(before), planPaidFor(after)];
  if (paidBefore === paid) return;
  const plan = paid ?? rules.unpaidPlan;
  await changePlan(change, org, { plan, reason }, rules);
}

function reasonOf({ status, isEntitling }: SubscriptionRow): PlanReason {
  if (isEntitling) return "paid";
  switch (status) {
    case "past_due":
      return "payment_overdue";
    case "paused":
    case "canceled":
      return status;
    default:
      return "unpaid";
  }
}

function hasChanged(known: SubscriptionRow, row: SubscriptionRow): boolean {
  return (["status", "plan", "cycle", "cancelAtPeriodEnd"] as const).some(
    (column) => known[column] !== row[column],
  );
}

/** Of an organization that is being deleted: nobody is charged for what is not there. */
export async function endSubscriptions(change: Change, orgId: string): Promise<void> {
  const rows = await change.tx.select().from(subscriptions).where(eq(subscriptions.orgId, orgId));
  for (const row of rows) if (isLiving(row.status)) endSubscription(change, row);
}

function endSubscription({ enqueue }: Change, { id, source }: SubscriptionRow): void {
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
  const before = new Date(Date.now() - BILLING_EVENT_KEEP_MS);
  await query.delete(billingEvents).where(lt(billingEvents.receivedAt, before));
}
