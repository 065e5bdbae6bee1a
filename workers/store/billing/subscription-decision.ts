/** What an update of one subscription changes, decided from the organization's rows alone. */
import type { SelfServicePlan } from "../../../protocol/plans.ts";
import type { PlanReason } from "./plan-changes.ts";
import type { subscriptions } from "../tables/billing.ts";
import {
  compareUpdate,
  computeOverdue,
  findPaidPlan,
  getGraceEnd,
  isEntitling,
  isOngoing,
  type KnownSubscription,
  type SubscriptionUpdate,
} from "./subscription-rules.ts";

export type SubscriptionRow = typeof subscriptions.$inferSelect;

/** A payment that the operator has to refund. */
export type BillingProblem = "paid_twice" | "paid_for_deleted";

type Overdue = Pick<KnownSubscription, "overdueSince" | "overduePeriodEnd">;
export type SubscriptionValues = Omit<SubscriptionRow, "id" | "orgId" | "source" | "createdAt">;

type Decision =
  | { kind: "inconclusive" | "unknown_price" }
  /** Only what it says about an overdue payment counts. */
  | { kind: "older"; overdue: Overdue | null }
  | {
      kind: "applied";
      values: SubscriptionValues;
      /** A person would notice the difference: it goes into the audit log. */
      isChange: boolean;
      /** The plan that is paid for has changed; null: nothing is paid for. */
      plan: { paid: SelfServicePlan | null; reason: PlanReason } | null;
      /** The owners are mailed that a payment failed and when the grace period ends. */
      graceEndsAt: Date | null;
      /** The organization was deleted: its owner must no longer be charged. */
      endsSubscription: boolean;
      problem: BillingProblem | null;
    };

/**
 * @param rows all subscriptions of the organization.
 * @param isDeleted whether the organization is.
 */
export function decideUpdate(
  rows: readonly SubscriptionRow[],
  update: SubscriptionUpdate,
  { isDeleted, now }: { isDeleted: boolean; now: Date },
): Decision {
  const { snapshot, occurredAt, fetched } = update;
  const known = rows.find(({ id }) => id === snapshot.id) ?? null;
  // A price that was removed from the settings is still what was bought.
  const purchase = snapshot.purchase ?? known;
  if (purchase === null) return { kind: "unknown_price" };
  const order = compareUpdate(known, update);
  if (order === "inconclusive") return { kind: "inconclusive" };
  const overdue = computeOverdue(known, update, order);
  if (order === "older") return { kind: "older", overdue: known && overdue };

  const { status, periodEnd, cancelAtPeriodEnd } = snapshot;
  const values: SubscriptionValues = {
    status,
    plan: purchase.plan,
    cycle: purchase.cycle,
    periodEnd,
    cancelAtPeriodEnd,
    eventAt: known && known.eventAt > occurredAt ? known.eventAt : occurredAt,
    askedAt: fetched?.at ?? known?.askedAt ?? null,
    ...overdue,
    isEntitling: isEntitling({ status, ...overdue }, now),
  };
  const isChange = !known || hasChanged(known, values);
  if (isDeleted) {
    const isPaidNow = values.isEntitling && !known?.isEntitling;
    return {
      kind: "applied",
      values,
      isChange,
      plan: null,
      graceEndsAt: null,
      endsSubscription: isOngoing(status),
      problem: isPaidNow ? "paid_for_deleted" : null,
    };
  }
  const others = rows.filter(({ id }) => id !== snapshot.id);
  const isNewlyOverdue = known?.status !== "past_due" && values.isEntitling;
  const isPaidTwice = values.isEntitling && others.some((other) => other.isEntitling);
  return {
    kind: "applied",
    values,
    isChange,
    plan: decidePlan(rows, [...others, values], getPlanReason(values)),
    graceEndsAt: isNewlyOverdue ? getGraceEnd(values) : null,
    endsSubscription: false,
    problem: isPaidTwice ? "paid_twice" : null,
  };
}

type Entitlement = Pick<SubscriptionRow, "plan" | "isEntitling">;

/** @returns null when what is paid for has not changed: a plan that the operator gave stays until it does. */
export function decidePlan(
  before: readonly Entitlement[],
  after: readonly Entitlement[],
  reason: PlanReason,
): { paid: SelfServicePlan | null; reason: PlanReason } | null {
  const paid = findPaidPlan(after);
  return paid === findPaidPlan(before) ? null : { paid, reason };
}

function getPlanReason({ status, isEntitling }: SubscriptionValues): PlanReason {
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

function hasChanged(known: SubscriptionRow, values: SubscriptionValues): boolean {
  return (["status", "plan", "cycle", "cancelAtPeriodEnd"] as const).some(
    (column) => known[column] !== values[column],
  );
}
