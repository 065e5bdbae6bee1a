/** Plans that are paid for, and what an owner sees of it. */
import { z } from "zod";
import { BILLING_CYCLES, PAID_PLANS, PLANS } from "../plans.ts";
import { Instant } from "./scalars.ts";

export const BILLING_MODES = ["none", "mock", "payments"] as const;

/** As the payment provider calls them. */
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
  plan: z.enum(PAID_PLANS),
  billing_cycle: z.enum(BILLING_CYCLES).default("monthly"),
});
export const CheckoutSession = z.object({ checkout_url: z.url() });
export type CheckoutSession = z.infer<typeof CheckoutSession>;
export const PortalSession = z.object({ portal_url: z.url() });
export type PortalSession = z.infer<typeof PortalSession>;

/** What an organization has beyond its plan: it is kept, and does not work. */
export const OverLimit = z.object({
  what: z.enum(["reserved_subdomains", "tunnel_passwords", "identity_gates", "master_keys"]),
  count: z.int(),
  allowed: z.int(),
});
export type OverLimit = z.infer<typeof OverLimit>;

const Prices = z.object({ monthly: z.number(), yearly: z.number() });

export const Billing = z.object({
  mode: z.enum(BILLING_MODES),
  /** What is in force right now. */
  plan: z.enum(PLANS),
  /** Of the subscription that counts. null: there is none. */
  status: z.enum(SUBSCRIPTION_STATUSES).nullable(),
  cycle: z.enum(BILLING_CYCLES).nullable(),
  currentPeriodEnd: Instant.nullable(),
  /** Set while a payment is overdue: until then the plan stays. */
  graceEndsAt: Instant.nullable(),
  cancelAtPeriodEnd: z.boolean(),
  overLimits: z.array(OverLimit),
  /** In US dollars. */
  prices: z.object({ pro: Prices, team: Prices }),
});
export type Billing = z.infer<typeof Billing>;
