/** What each plan grants, and what traffic costs: the one place for both. */
import { TUNNEL_TTL_MAX_SECONDS } from "../../../protocol/limits.ts";
import type { Entitlements } from "../../../protocol/schemas/accounts/accounts.ts";
import {
  type BillingCycle,
  type SelfServicePlan,
  PLANS,
  type Plan,
} from "../../../protocol/plans.ts";

interface PlanTerms {
  /** A tunnel ends after this unless it asks for less. null: it stays. */
  tunnelTtlSeconds: number | null;
  /** Names that are kept without a tunnel. null: as many as one likes. */
  maxReservedSubdomains: number | null;
  /** How long visitors' requests can be looked at. */
  inspectorRetentionDays: number;
  /** Basic auth in front of a tunnel. */
  tunnelPassword: boolean;
  /** A provider's sign-in in front of a tunnel. */
  identityGate: boolean;
  /** Of a hosted organization; on one's own server everybody may. */
  masterKeys: boolean;
}

export type Feature = "tunnelPassword" | "identityGate" | "masterKeys";

/** The plan of an organization. */
export interface PlanState {
  plan: Plan;
  trialEndsAt: Date | null;
}

const HOUR_SECONDS = 3600;

export const PLAN_LIMITS: Record<Plan, PlanTerms> = {
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

/** What a running trial grants on any plan. */
const FEATURES_OF_TRIAL: ReadonlySet<Feature> = new Set(["tunnelPassword"]);

/** What a token's budget is charged for its traffic: bytes of both directions, requests of every kind. */
const USD_CENTS_PER_GIGABYTE = 10;
const USD_CENTS_PER_MILLION_REQUESTS = 50;

/** Rounded down to whole cents: a budget is spent when this reaches it. */
export function usdCentsFor({ bytes, requests }: { bytes: number; requests: number }): number {
  const cents =
    (bytes / 1e9) * USD_CENTS_PER_GIGABYTE + (requests / 1e6) * USD_CENTS_PER_MILLION_REQUESTS;
  return Math.floor(cents);
}

/** When a tunnel that is made now ends: as asked, and no later than its plan allows. null: never. */
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

/** Whether an organization may do what only some plans grant. */
export function mayUse(feature: Feature, { plan, trialEndsAt }: PlanState, now: Date): boolean {
  const isOnTrial = trialEndsAt !== null && trialEndsAt > now;
  return PLAN_LIMITS[plan][feature] || (isOnTrial && FEATURES_OF_TRIAL.has(feature));
}

export function getEntitlements(standing: PlanState, hosted: boolean, now: Date): Entitlements {
  const { plan, trialEndsAt } = standing;
  const terms = PLAN_LIMITS[plan];
  return {
    plan,
    trial_ends_at: trialEndsAt?.toISOString() ?? null,
    tunnel_ttl_seconds: terms.tunnelTtlSeconds,
    max_reserved_subdomains: terms.maxReservedSubdomains,
    inspector_retention_days: terms.inspectorRetentionDays,
    tunnel_password: mayUse("tunnelPassword", standing, now),
    edge_identity_gate: mayUse("identityGate", standing, now),
    master_keys: !hosted || mayUse("masterKeys", standing, now),
  };
}
