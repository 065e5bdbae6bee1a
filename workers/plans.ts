/** What each plan grants: the one table. */
import { TUNNEL_TTL_MAX_SECONDS } from "../protocol/limits.ts";
import type { Plan } from "./config.ts";

interface PlanTerms {
  /** A tunnel ends after this unless it asks for less. null: it stays. */
  tunnelTtlSeconds: number | null;
}

const HOUR_SECONDS = 3600;

export const PLAN_TERMS: Record<Plan, PlanTerms> = {
  free: { tunnelTtlSeconds: HOUR_SECONDS },
  pro: { tunnelTtlSeconds: 24 * HOUR_SECONDS },
  team: { tunnelTtlSeconds: 7 * 24 * HOUR_SECONDS },
  enterprise: { tunnelTtlSeconds: null },
};

/** When a tunnel that is made now ends: as asked, and no later than its plan allows. null: never. */
export function tunnelExpiry(plan: Plan, askedSeconds: number | undefined, now: Date): Date | null {
  const granted = PLAN_TERMS[plan].tunnelTtlSeconds;
  if (granted === null && askedSeconds === undefined) return null;
  const seconds = Math.min(askedSeconds ?? Infinity, granted ?? TUNNEL_TTL_MAX_SECONDS);
  return new Date(now.getTime() + seconds * 1000);
}
