/**
 * How updates of a subscription from the payment provider are ordered and applied. They arrive in any order and more
 * than once: the result must be the same for every order of arrival.
 */
import { PAYMENT_GRACE_MS } from "../../limits.ts";
import type { BillingCycle, SelfServicePlan, Plan } from "../../../protocol/plans.ts";
import type { SubscriptionStatus } from "../../../protocol/schemas/billing.ts";
import { isBetter } from "./plans.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** How far the provider's clock may differ from ours. Its events are dated by its own clock, to the second. */
const PAYMENTS_CLOCK_SKEW_MS = 5 * MINUTE_MS;

/** A subscription as the provider described it at one time. */
export interface SubscriptionSnapshot {
  id: string;
  customerId: string;
  status: SubscriptionStatus;
  /** null: its price is not in our settings. */
  purchase: { plan: SelfServicePlan; cycle: BillingCycle } | null;
  periodEnd: Date | null;
  cancelAtPeriodEnd: boolean;
}

export interface SubscriptionUpdate {
  snapshot: SubscriptionSnapshot;
  /** When it happened, by the provider's clock, to the second. */
  occurredAt: Date;
  /** When the payment failed, if one did. */
  failedAt: Date;
  /** The snapshot was fetched from the provider, after `basedOn` was read. null: an event contained it. */
  fetched: { at: Date; basedOn: Version | null } | null;
}

/** Tells whether a subscription was updated since: every applied update changes one of the two. */
export interface Version {
  /** The time of the newest event that was applied. */
  eventAt: Date;
  /** When the subscription was last fetched from the provider. */
  askedAt: Date | null;
}

/** A subscription as its rows describe it. */
export interface KnownSubscription extends Version {
  status: SubscriptionStatus;
  overdueSince: Date | null;
  /** The end of the billing period whose payment is overdue. */
  overduePeriodEnd: Date | null;
}

/** A subscription never leaves these statuses. */
const FINAL_STATUSES: readonly SubscriptionStatus[] = ["canceled", "incomplete_expired"];

/**
 * Events of the same second have no order; a fetched snapshot may already include an event of the last minutes; and an
 * event that arrived during the fetch may be newer than the fetched snapshot. In these cases the update is inconclusive,
 * and the subscription has to be fetched (again).
 */
export function compareUpdate(
  known: KnownSubscription | null,
  { snapshot, occurredAt, fetched }: SubscriptionUpdate,
): "newer" | "older" | "inconclusive" {
  if (known === null) return "newer";
  if (FINAL_STATUSES.includes(known.status)) return "older";
  if (FINAL_STATUSES.includes(snapshot.status)) return "newer";
  if (fetched !== null) return isSame(known, fetched.basedOn) ? "newer" : "inconclusive";
  if (occurredAt < known.eventAt) return "older";
  const wasFetchedLately =
    known.askedAt !== null &&
    occurredAt.getTime() <= known.askedAt.getTime() + PAYMENTS_CLOCK_SKEW_MS;
  return occurredAt > known.eventAt && !wasFetchedLately ? "newer" : "inconclusive";
}

function isSame(known: Version, before: Version | null): boolean {
  if (before === null) return false;
  return (["eventAt", "askedAt"] as const).every(
    (field) => known[field]?.getTime() === before[field]?.getTime(),
  );
}

/**
 * Since when a payment is overdue: the first failure in one billing period. A payment clears it, so that the next
 * failure starts a grace period of its own; an older update counts only while the payment is still overdue.
 */
export function computeOverdue(
  known: KnownSubscription | null,
  { snapshot, failedAt }: SubscriptionUpdate,
  order: "newer" | "older",
): Pick<KnownSubscription, "overdueSince" | "overduePeriodEnd"> {
  const before = {
    overdueSince: known?.overdueSince ?? null,
    overduePeriodEnd: known?.overduePeriodEnd ?? null,
  };
  if (order === "older" && known?.status !== "past_due") return before;
  if (snapshot.status !== "past_due") {
    const isPaid = snapshot.status === "active" || snapshot.status === "trialing";
    const isCleared = isPaid && order === "newer";
    return isCleared ? { overdueSince: null, overduePeriodEnd: null } : before;
  }
  const updated = { overdueSince: failedAt, overduePeriodEnd: snapshot.periodEnd };
  if (before.overdueSince === null) return updated;
  const [knownEnd, end] = [before.overduePeriodEnd, snapshot.periodEnd].map(
    (date) => date?.getTime() ?? 0,
  );
  if (end === knownEnd) return failedAt < before.overdueSince ? updated : before;
  return end! > knownEnd! ? updated : before;
}

/** @returns null for a subscription without a grace period. */
export function getGraceEnd({
  status,
  overdueSince,
}: Pick<KnownSubscription, "status" | "overdueSince">): Date | null {
  if (status !== "past_due" || overdueSince === null) return null;
  return new Date(overdueSince.getTime() + PAYMENT_GRACE_MS);
}

/** Whether a subscription entitles to its plan. A subscription that ends with its period is active until then. */
export function isEntitling(
  known: Pick<KnownSubscription, "status" | "overdueSince">,
  now: Date,
): boolean {
  switch (known.status) {
    case "trialing":
    case "active":
      return true;
    case "past_due": {
      const end = getGraceEnd(known);
      return end !== null && end > now;
    }
    case "canceled":
    case "unpaid":
    case "incomplete":
    case "incomplete_expired":
    case "paused":
      return false;
  }
}

/** Whether it can still be paid for, changed or ended: an organization that has one must not buy a second. */
export function isOngoing(status: SubscriptionStatus): boolean {
  return status !== "incomplete" && !FINAL_STATUSES.includes(status);
}

/** The best plan that is paid for; null: none is. */
export function findPaidPlan(
  subscriptions: readonly { plan: SelfServicePlan; isEntitling: boolean }[],
): SelfServicePlan | null {
  let best: SelfServicePlan | null = null;
  for (const { plan, isEntitling } of subscriptions) {
    if (isEntitling && (best === null || isBetter(plan, best))) best = plan;
  }
  return best;
}

/** The subscription that the billing page shows: the one with the best plan, or else the newest. */
export function pickCurrentSubscription<
  Candidate extends { plan: Plan; isEntitling: boolean; status: SubscriptionStatus; eventAt: Date },
>(subscriptions: Candidate[]): Candidate | null {
  const rank = (candidate: Candidate) =>
    [candidate.isEntitling, isOngoing(candidate.status)].map(Number);
  const [first] = [...subscriptions].sort((a, b) => {
    const [entitlesA = 0, ongoingA = 0] = rank(a);
    const [entitlesB = 0, ongoingB = 0] = rank(b);
    if (entitlesA !== entitlesB) return entitlesB - entitlesA;
    if (entitlesA && a.plan !== b.plan) return isBetter(a.plan, b.plan) ? -1 : 1;
    return ongoingB - ongoingA || b.eventAt.getTime() - a.eventAt.getTime();
  });
  return first ?? null;
}
