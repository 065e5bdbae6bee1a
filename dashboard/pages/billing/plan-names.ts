/** The plans' names for people. */
import type { Plan } from "../../../protocol/plans.ts";

export const PLAN_NAMES: Record<Plan, string> = {
  free: "Free",
  pro: "Pro",
  team: "Team",
  enterprise: "Enterprise",
};
