/** The features and limits of an organization by its plan and its trial, and the price of traffic. */
import { TUNNEL_TTL_MAX_SECONDS } from "../../../protocol/limits.ts";
import {
  type Entitlements,
  type Feature,
  PLAN_LIMITS,
  type PlanLimits,
} from "../../../protocol/schemas/accounts/entitlements.ts";
import {
  type BillingCycle,
  type SelfServicePlan,
  PLANS,
  type Plan,
} from "../../../protocol/plans.ts";

/** The plan of an organization, and the end of its trial. null: it has no trial. */
export interface PlanState {
  plan: Plan;
  trialEndsAt: Date | null;
}

/** In US dollars, for one month or one year. These are for display: the payment provider charges its own configured prices. */
export const PLAN_PRICES: Record<SelfServicePlan, Record<BillingCycle, number>> = {
  pro: { monthly: 10, yearly: 100 },
  team: { monthly: 40, yearly: 400 },
};

/** Whether a plan grants more than another one does. */
export function isBetter(plan: Plan, than: Plan): boolean {
  return PLANS.indexOf(plan) > PLANS.indexOf(than);
}

/** The features that a running trial adds to any plan. */
const TRIAL_FEATURES: Partial<Record<Feature, true>> = { tunnel_password: true };
/** The features that a self-hosted server adds to any plan. */
const SELF_HOSTED_FEATURES: Partial<Record<Feature, true>> = { master_keys: true };

/** The price list that budgets are charged by: bytes of both directions, and requests of every kind. */
const USD_CENTS_PER_GIGABYTE = 10;
const USD_CENTS_PER_MILLION_REQUESTS = 50;

/** The cost of traffic in US cents, rounded down: a budget is spent when the cost reaches it. */
export function computeUsdCents({ bytes, requests }: { bytes: number; requests: number }): number {
  const cents =
    (bytes / 1e9) * USD_CENTS_PER_GIGABYTE + (requests / 1e6) * USD_CENTS_PER_MILLION_REQUESTS;
  return Math.floor(cents);
}

/** When a tunnel that is created now expires: as requested, and no later than its plan and the maximum allow. null: never. */
export function getTunnelExpiry(
  plan: Plan,
  requestedSeconds: number | undefined,
  now: Date,
): Date | null {
  const granted = PLAN_LIMITS[plan].tunnel_ttl_seconds;
  if (granted === null && requestedSeconds === undefined) return null;
  const seconds = Math.min(
    requestedSeconds ?? Infinity,
    granted ?? Infinity,
    TUNNEL_TTL_MAX_SECONDS,
  );
  return new Date(now.getTime() + seconds * 1000);
}

/**
 * The requested expiry, limited by the maximum for all tunnels but not by the plan. A better plan never extends a
 * tunnel beyond it.
 */
export function getRequestedExpiry(requestedSeconds: number | undefined, now: Date): Date | null {
  if (requestedSeconds === undefined) return null;
  return new Date(now.getTime() + Math.min(requestedSeconds, TUNNEL_TTL_MAX_SECONDS) * 1000);
}

/** Whether an organization has a feature, by its plan or by its trial. */
export function hasFeature(feature: Feature, planState: PlanState, now: Date): boolean {
  return (
    PLAN_LIMITS[planState.plan][feature] || (getTrialFeatures(planState, now)[feature] ?? false)
  );
}

function getTrialFeatures({ trialEndsAt }: PlanState, now: Date): Partial<Record<Feature, true>> {
  return trialEndsAt !== null && trialEndsAt > now ? TRIAL_FEATURES : {};
}

/** The limits of a plan on this server, without a trial. */
export function getPlanLimits(plan: Plan, isHosted: boolean): PlanLimits {
  return { ...PLAN_LIMITS[plan], ...(isHosted ? {} : SELF_HOSTED_FEATURES) };
}

export function getEntitlements(planState: PlanState, isHosted: boolean, now: Date): Entitlements {
  const { plan, trialEndsAt } = planState;
  return {
    plan,
    trial_ends_at: trialEndsAt?.toISOString() ?? null,
    ...getPlanLimits(plan, isHosted),
    ...getTrialFeatures(planState, now),
  };
}
