/** What each plan grants, and what traffic costs: the one place for both. */
import { TUNNEL_TTL_MAX_SECONDS } from "../../../protocol/limits.ts";
import type { Entitlements } from "../../../protocol/schemas/accounts/accounts.ts";
import {
  type BillingCycle,
  type SelfServicePlan,
  PLANS,
  type Plan,
} from "../../../protocol/plans.ts";

interface PlanLimits {
  /** A tunnel expires after this time, or earlier if its creator asked for less. null: it never expires. */
  tunnelTtlSeconds: number | null;
  /** Subdomains that stay reserved without a tunnel. null: no limit. */
  maxReservedSubdomains: number | null;
  /** How long captured requests and webhook deliveries are stored. */
  inspectorRetentionDays: number;
  /** The password gate of a tunnel. */
  tunnelPassword: boolean;
  /** The gate of a tunnel at which visitors sign in. */
  identityGate: boolean;
  /** Applies on a hosted service only: a self-hosted server allows master keys on every plan. */
  masterKeys: boolean;
}

export type Feature = "tunnelPassword" | "identityGate" | "masterKeys";

/** The plan of an organization, and the end of its trial. null: it has no trial. */
export interface PlanState {
  plan: Plan;
  trialEndsAt: Date | null;
}

const HOUR_SECONDS = 3600;

export const PLAN_LIMITS: Record<Plan, PlanLimits> = {
  free: {
    tunnelTtlSeconds: HOUR_SECONDS,
    maxReservedSubdomains: 0,
    inspectorRetentionDays: 7,
    tunnelPassword: false,
    identityGate: false,
    masterKeys: false,
  },
  pro: {
    tunnelTtlSeconds: 24 * HOUR_SECONDS,
    maxReservedSubdomains: 5,
    inspectorRetentionDays: 30,
    tunnelPassword: true,
    identityGate: true,
    masterKeys: true,
  },
  team: {
    tunnelTtlSeconds: 7 * 24 * HOUR_SECONDS,
    maxReservedSubdomains: null,
    inspectorRetentionDays: 90,
    tunnelPassword: true,
    identityGate: true,
    masterKeys: true,
  },
  enterprise: {
    tunnelTtlSeconds: null,
    maxReservedSubdomains: null,
    inspectorRetentionDays: 365,
    tunnelPassword: true,
    identityGate: true,
    masterKeys: true,
  },
};

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
const TRIAL_FEATURES: ReadonlySet<Feature> = new Set(["tunnelPassword"]);

/** The price list that budgets are charged by: bytes of both directions, and requests of every kind. */
const USD_CENTS_PER_GIGABYTE = 10;
const USD_CENTS_PER_MILLION_REQUESTS = 50;

/** The cost of traffic in US cents, rounded down: a budget is spent when the cost reaches it. */
export function computeUsdCents({ bytes, requests }: { bytes: number; requests: number }): number {
  const cents =
    (bytes / 1e9) * USD_CENTS_PER_GIGABYTE + (requests / 1e6) * USD_CENTS_PER_MILLION_REQUESTS;
  return Math.floor(cents);
}

/** When a tunnel that is created now expires: as requested, and no later than its plan allows. null: never. */
export function getTunnelExpiry(
  plan: Plan,
  requestedSeconds: number | undefined,
  now: Date,
): Date | null {
  const granted = PLAN_LIMITS[plan].tunnelTtlSeconds;
  if (granted === null && requestedSeconds === undefined) return null;
  const seconds = Math.min(requestedSeconds ?? Infinity, granted ?? TUNNEL_TTL_MAX_SECONDS);
  return new Date(now.getTime() + seconds * 1000);
}

/** The requested expiry, whatever the plan allows: a better plan never extends a tunnel beyond it. */
export function getRequestedExpiry(requestedSeconds: number | undefined, now: Date): Date | null {
  return requestedSeconds === undefined ? null : new Date(now.getTime() + requestedSeconds * 1000);
}

/** Whether an organization has a feature, by its plan or by its trial. */
export function hasFeature(feature: Feature, { plan, trialEndsAt }: PlanState, now: Date): boolean {
  const isOnTrial = trialEndsAt !== null && trialEndsAt > now;
  return PLAN_LIMITS[plan][feature] || (isOnTrial && TRIAL_FEATURES.has(feature));
}

export function getEntitlements(planState: PlanState, hosted: boolean, now: Date): Entitlements {
  const { plan, trialEndsAt } = planState;
  const limits = PLAN_LIMITS[plan];
  return {
    plan,
    trial_ends_at: trialEndsAt?.toISOString() ?? null,
    tunnel_ttl_seconds: limits.tunnelTtlSeconds,
    max_reserved_subdomains: limits.maxReservedSubdomains,
    inspector_retention_days: limits.inspectorRetentionDays,
    tunnel_password: hasFeature("tunnelPassword", planState, now),
    edge_identity_gate: hasFeature("identityGate", planState, now),
    master_keys: !hosted || hasFeature("masterKeys", planState, now),
  };
}
