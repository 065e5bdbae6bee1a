/** What each plan grants, and what traffic costs: the one place for both. */
import { TUNNEL_TTL_MAX_SECONDS } from "../protocol/limits.ts";
import type { Plan } from "./config.ts";

interface PlanTerms {
  /** A tunnel ends after this unless it asks for less. null: it stays. */
  tunnelTtlSeconds: number | null;
  /** Basic auth in front of a tunnel. */
  tunnelPassword: boolean;
  /** A provider's sign-in in front of a tunnel. */
  identityGate: boolean;
  /** Names that are kept without a tunnel. null: as many as one likes. */
  maxReservedSubdomains: number | null;
  /** Of a hosted organization; on one's own server everybody may. */
  masterKeys: boolean;
}

const HOUR_SECONDS = 3600;

export const PLAN_TERMS: Record<Plan, PlanTerms> = {
  free: {
    tunnelTtlSeconds: HOUR_SECONDS,
    tunnelPassword: false,
    identityGate: false,
    maxReservedSubdomains: 0,
    masterKeys: false,
  },
  pro: {
    tunnelTtlSeconds: 24 * HOUR_SECONDS,
    tunnelPassword: true,
    identityGate: true,
    maxReservedSubdomains: 5,
    masterKeys: true,
  },
  team: {
    tunnelTtlSeconds: 7 * 24 * HOUR_SECONDS,
    tunnelPassword: true,
    identityGate: true,
    maxReservedSubdomains: null,
    masterKeys: true,
  },
  enterprise: {
    tunnelTtlSeconds: null,
    tunnelPassword: true,
    identityGate: true,
    maxReservedSubdomains: null,
    masterKeys: true,
  },
};

/** What a token's budget is charged for its traffic: bytes of both directions, requests of every kind. */
const USD_CENTS_PER_GIGABYTE = 10;
const USD_CENTS_PER_MILLION_REQUESTS = 50;

/** In whole cents, of which none is begun: a budget is spent when this reaches it. */
export function usdCentsFor({ bytes, requests }: { bytes: number; requests: number }): number {
  const cents =
    (bytes / 1e9) * USD_CENTS_PER_GIGABYTE + (requests / 1e6) * USD_CENTS_PER_MILLION_REQUESTS;
  return Math.floor(cents);
}

/** When a tunnel that is made now ends: as asked, and no later than its plan allows. null: never. */
export function tunnelExpiry(plan: Plan, askedSeconds: number | undefined, now: Date): Date | null {
  const granted = PLAN_TERMS[plan].tunnelTtlSeconds;
  if (granted === null && askedSeconds === undefined) return null;
  const seconds = Math.min(askedSeconds ?? Infinity, granted ?? TUNNEL_TTL_MAX_SECONDS);
  return new Date(now.getTime() + seconds * 1000);
}

/** Whether an organization may do what only some plans grant; a running trial grants all of it. */
export function mayUse(
  feature: "tunnelPassword" | "identityGate",
  { plan, trialEndsAt }: { plan: Plan; trialEndsAt: Date | null },
  now: Date,
): boolean {
  return PLAN_TERMS[plan][feature] || (trialEndsAt !== null && trialEndsAt > now);
}
