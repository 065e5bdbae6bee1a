/**
 * What each plan grants: the one list. The entitlements that the API returns have the same fields, and the checks in
 * `workers/store/` read them by these names.
 */
import { z } from "zod";
import { PLANS, type Plan } from "../../plans.ts";
import { Instant } from "../scalars.ts";

export const PlanLimits = z.object({
  tunnel_ttl_seconds: z
    .int()
    .nullable()
    .describe(
      "The lifetime of a tunnel, or less if its creator asked for less. null: it never expires.",
    ),
  max_reserved_subdomains: z
    .int()
    .nullable()
    .describe("Names that stay reserved without a tunnel. null: unlimited."),
  inspector_retention_days: z
    .int()
    .describe("How long captured requests and webhook deliveries are stored."),
  tunnel_password: z.boolean().describe("The password gate of a tunnel."),
  edge_identity_gate: z.boolean().describe("The gate of a tunnel at which visitors sign in."),
  master_keys: z
    .boolean()
    .describe(
      "Tokens that create tokens for projects. A self-hosted server allows them on every plan.",
    ),
});
export type PlanLimits = z.infer<typeof PlanLimits>;

/** A limit that a plan either includes or does not. */
export type Feature = {
  [Name in keyof PlanLimits]: PlanLimits[Name] extends boolean ? Name : never;
}[keyof PlanLimits];

/** The features and limits of the active organization now, including a running trial. */
export const Entitlements = z.object({
  plan: z.enum(PLANS),
  trial_ends_at: Instant.nullable(),
  ...PlanLimits.shape,
});
export type Entitlements = z.infer<typeof Entitlements>;

const HOUR_SECONDS = 3600;

export const PLAN_LIMITS: Record<Plan, PlanLimits> = {
  free: {
    tunnel_ttl_seconds: HOUR_SECONDS,
    max_reserved_subdomains: 0,
    inspector_retention_days: 7,
    tunnel_password: false,
    edge_identity_gate: false,
    master_keys: false,
  },
  pro: {
    tunnel_ttl_seconds: 24 * HOUR_SECONDS,
    max_reserved_subdomains: 5,
    inspector_retention_days: 30,
    tunnel_password: true,
    edge_identity_gate: true,
    master_keys: true,
  },
  team: {
    tunnel_ttl_seconds: 7 * 24 * HOUR_SECONDS,
    max_reserved_subdomains: null,
    inspector_retention_days: 90,
    tunnel_password: true,
    edge_identity_gate: true,
    master_keys: true,
  },
  enterprise: {
    tunnel_ttl_seconds: null,
    max_reserved_subdomains: null,
    inspector_retention_days: 365,
    tunnel_password: true,
    edge_identity_gate: true,
    master_keys: true,
  },
};
