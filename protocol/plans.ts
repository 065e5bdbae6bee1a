/** The plans of an organization. This file imports no library, because browser pages import it too. */

/** From the smallest to the largest. */
export const PLANS = ["free", "pro", "team", "enterprise"] as const;
export type Plan = (typeof PLANS)[number];

/** The plans that can be bought. */
export const SELF_SERVICE_PLANS = ["pro", "team"] as const;
export type SelfServicePlan = (typeof SELF_SERVICE_PLANS)[number];

export const BILLING_CYCLES = ["monthly", "yearly"] as const;
export type BillingCycle = (typeof BILLING_CYCLES)[number];
