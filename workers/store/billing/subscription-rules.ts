/**
 * What the payment provider says of a subscription, and what that comes to. News travels in any order and
 * more than once: what holds in the end must follow from all of it, not from when it came.
 */
import { PAYMENT_GRACE_MS } from "../../limits.ts";
import type { BillingCycle, PaidPlan } from "../../../protocol/paid-plans.ts";
import type { SubscriptionStatus } from "../../../protocol/schemas/billing.ts";
import type { Plan } from "../../config/config.ts";
import { isBetter } from "./plans.ts";

/** How far the provider's clock may be from ours: what it tells is dated by its own, to the second. */
const PAYMENTS_CLOCK_SKEW_MS = 5 * 60_000;

/** A subscription at one moment. */
export interface SubscriptionSnapshot {
  id: string;
  customerId: string;
  status: SubscriptionStatus;
  /** null: its price is none of ours. */
  purchase: { plan: PaidPlan; cycle: BillingCycle } | null;
  periodEnd: Date | null;
  cancelAtPeriodEnd: boolean;
}

export interface SubscriptionUpdate {
  snapshot: SubscriptionSnapshot;
  /** When the provider says that it was so, to the second. */
  occurredAt: Date;
  /** When the payment failed, should one have. */
  failedAt: Date;
  /** The provider was asked. null: it is what an event carried. */
  fetched: { at: Date; basedOn: Version | null } | null;
}

/** As much as tells whether something was heard since: all that is believed moves one of the two. */
export interface Version {
  /** Of the newest event that was believed. */
  eventAt: Date;
  /** When the provider was asked last. */
  askedAt: Date | null;
}

/** What is known of a subscription that was heard of before. */
export interface KnownSubscription extends Version {
  status: SubscriptionStatus;
  overdueSince: Date | null;
  /** The end of the period in which that was. */
  overduePeriodEnd: Date | null;
}

/** Nothing comes after these. */
const FINAL: readonly SubscriptionStatus[] = ["canceled", "incomplete_expired"];

/**
 * Events of the same second are in no order, an answer of the provider may already know what an event of
 * these minutes tells, and what came while the provider was asked may be newer than its answer: then the
 * provider has to be asked, or asked again.
 */
export function compareUpdate(
  known: KnownSubscription | null,
  { snapshot, occurredAt, fetched }: SubscriptionUpdate,
): "newer" | "older" | "inconclusive" {
  if (known === null) return "newer";
  if (FINAL.includes(known.status)) return "older";
  if (FINAL.includes(snapshot.status)) return "newer";
  if (fetched !== null) return isSame(known, fetched.basedOn) ? "newer" : "inconclusive";
  if (occurredAt < known.eventAt) return "older";
  const knewLately =
    known.askedAt !== null &&
    occurredAt.getTime() <= known.askedAt.getTime() + PAYMENTS_CLOCK_SKEW_MS;
  return occurredAt > known.eventAt && !knewLately ? "newer" : "inconclusive";
}

function isSame(known: Version, before: Version | null): boolean {
  if (before === null) return false;
  return (["eventAt", "askedAt"] as const).every(
    (moment) => known[moment]?.getTime() === before[moment]?.getTime(),
  );
}

/**
 * Since when a payment is overdue: the first that was heard of it in one period. What is paid is forgotten,
 * so that the next that fails has a grace of its own; what is older counts only while nothing was paid.
 */
export function computeOverdue(
  known: KnownSubscription | null,
  { snapshot, failedAt }: SubscriptionUpdate,
  verdict: "newer" | "older",
): Pick<KnownSubscription, "overdueSince" | "overduePeriodEnd"> {
  const before = {
    overdueSince: known?.overdueSince ?? null,
    overduePeriodEnd: known?.overduePeriodEnd ?? null,
  };
  if (verdict === "older" && known?.status !== "past_due") return before;
  if (snapshot.status !== "past_due") {
    const isPaid = snapshot.status === "active" || snapshot.status === "trialing";
    const isForgotten = isPaid && verdict === "newer";
    return isForgotten ? { overdueSince: null, overduePeriodEnd: null } : before;
  }
  const news = { overdueSince: failedAt, overduePeriodEnd: snapshot.periodEnd };
  if (before.overdueSince === null) return news;
  const [knownEnd, end] = [before.overduePeriodEnd, snapshot.periodEnd].map(
    (moment) => moment?.getTime() ?? 0,
  );
  if (end === knownEnd) return failedAt < before.overdueSince ? news : before;
  return end! > knownEnd! ? news : before;
}

/** null: there is none. */
export function getGraceEnd({
  status,
  overdueSince,
}: Pick<KnownSubscription, "status" | "overdueSince">): Date | null {
  if (status !== "past_due" || overdueSince === null) return null;
  return new Date(overdueSince.getTime() + PAYMENT_GRACE_MS);
}

/** Whether a subscription gives its plan. One that ends with its period is active until then. */
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

/** Whether it can still be paid for, changed or ended: whoever has one must not buy a second. */
export function isOngoing(status: SubscriptionStatus): boolean {
  return status !== "incomplete" && !FINAL.includes(status);
}

/** The best of what is paid for. null: nothing is. */
export function findPaidPlan(
  subscriptions: readonly { plan: PaidPlan; isEntitling: boolean }[],
): PaidPlan | null {
  let best: PaidPlan | null = null;
  for (const { plan, isEntitling } of subscriptions) {
    if (isEntitling && (best === null || isBetter(plan, best))) best = plan;
  }
  return best;
}

/** The one that counts: what gives the better plan, or was heard of last. */
export function pickCurrentSubscription<
  Kept extends { plan: Plan; isEntitling: boolean; status: SubscriptionStatus; eventAt: Date },
>(subscriptions: Kept[]): Kept | null {
  const rank = (kept: Kept) => [kept.isEntitling, isOngoing(kept.status)].map(Number);
  const [first] = [...subscriptions].sort((a, b) => {
    const [entitlesA = 0, livesA = 0] = rank(a);
    const [entitlesB = 0, livesB = 0] = rank(b);
    if (entitlesA !== entitlesB) return entitlesB - entitlesA;
    if (entitlesA && a.plan !== b.plan) return isBetter(a.plan, b.plan) ? -1 : 1;
    return livesB - livesA || b.eventAt.getTime() - a.eventAt.getTime();
  });
  return first ?? null;
}
