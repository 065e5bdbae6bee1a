/** Paid plans: the checkout, and the billing page of an owner. */
import { z } from "zod";
import { LIMITED_RESOURCES } from "../over-limits.ts";
import { BILLING_CYCLES, SELF_SERVICE_PLANS, PLANS } from "../plans.ts";
import { PlanLimits } from "./accounts/entitlements.ts";
import { Instant } from "./scalars.ts";

export const BILLING_MODES = ["none", "mock", "payments"] as const;

/** The payment provider's names. */
export const SUBSCRIPTION_STATUSES = [
  "trialing",
  "active",
  "past_due",
  "canceled",
  "unpaid",
  "incomplete",
  "incomplete_expired",
  "paused",
] as const;
export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];

export const StartCheckout = z.object({
  plan: z.enum(SELF_SERVICE_PLANS),
  billing_cycle: z.enum(BILLING_CYCLES).default("monthly"),
});
export const CheckoutSession = z.object({ checkout_url: z.url() });
export type CheckoutSession = z.infer<typeof CheckoutSession>;
export const PortalSession = z.object({ portal_url: z.url() });
export type PortalSession = z.infer<typeof PortalSession>;

/** Resources beyond an organization's plan: they remain stored, but do not work. */
export const OverLimit = z.object({
  what: z.enum(LIMITED_RESOURCES),
  count: z.int(),
  allowed: z.int(),
});
export type OverLimit = z.infer<typeof OverLimit>;

const Prices = z.object({ monthly: z.number(), yearly: z.number() });

export const Billing = z.object({
  mode: z.enum(BILLING_MODES),
  plan: z.enum(PLANS).describe("The plan in force now."),
  status: z
    .enum(SUBSCRIPTION_STATUSES)
    .nullable()
    .describe("The status of the current subscription; null without one."),
  cycle: z.enum(BILLING_CYCLES).nullable(),
  currentPeriodEnd: Instant.nullable(),
  graceEndsAt: Instant.nullable().describe(
    "Set while a payment is overdue: the plan stays in force until then.",
  ),
  cancelAtPeriodEnd: z.boolean(),
  overLimits: z.array(OverLimit),
  prices: z.object({ pro: Prices, team: Prices }).describe("In US dollars."),
  limits: z
    .object({ free: PlanLimits, pro: PlanLimits, team: PlanLimits, enterprise: PlanLimits })
    .describe("What each plan includes on this server, without a trial."),
});
export type Billing = z.infer<typeof Billing>;
