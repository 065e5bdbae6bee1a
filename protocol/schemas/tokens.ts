/** Capability tokens. */
import { z } from "zod";
import {
  MASTER_KEY_TTL_MAX_DAYS,
  MONTHLY_BUDGET_MAX_USD_CENTS,
  TOKEN_BANDWIDTH_DEFAULT_MBPS,
  TOKEN_NAME_MAX_CHARS,
  TOKEN_TTL_MAX_HOURS,
  TOKEN_TUNNELS_DEFAULT,
} from "../limits.ts";
import { SUBDOMAIN_WILDCARD } from "../names.ts";
import { VisibleLine, WholeNumber } from "./scalars.ts";

const TOKEN_TTL_DEFAULT_HOURS = 24;
const TOKEN_SUBDOMAINS_MAX = 100;
const MASTER_KEY_TTL_DEFAULT_DAYS = 90;

/** In the order of their numbers in the bytes of a capability token (docs/protocols/capability-token.md). */
export const TOKEN_KINDS = ["agent", "master"] as const;

/** The maximum of a 32-bit column. */
const INT32_MAX = 2 ** 31 - 1;

const TtlHours = WholeNumber(1, TOKEN_TTL_MAX_HOURS);
const Patterns = z
  .array(
    z
      .string()
      .regex(
        SUBDOMAIN_WILDCARD,
        "must have 1 to 63 lower-case letters, digits, hyphens or * wildcards, with no hyphen at the start or the end",
      ),
  )
  .max(TOKEN_SUBDOMAINS_MAX);

export const MintToken = z.object({
  name: VisibleLine(TOKEN_NAME_MAX_CHARS),
  ttlHours: TtlHours.default(TOKEN_TTL_DEFAULT_HOURS),
  allowedSubdomains: Patterns.default([]),
  bandwidthLimitMbps: WholeNumber(1, INT32_MAX).default(TOKEN_BANDWIDTH_DEFAULT_MBPS),
  tunnelQuota: WholeNumber(1, INT32_MAX).default(TOKEN_TUNNELS_DEFAULT),
});

export const MintMasterKey = z.object({
  name: VisibleLine(TOKEN_NAME_MAX_CHARS),
  ttl_days: WholeNumber(1, MASTER_KEY_TTL_MAX_DAYS).default(MASTER_KEY_TTL_DEFAULT_DAYS),
});

export const MintProjectToken = z.object({
  name: VisibleLine(TOKEN_NAME_MAX_CHARS),
  ttl_hours: TtlHours.optional().describe(
    "Default: less for a machine with a master key than for a user.",
  ),
  allowed_subdomains: Patterns.default([]),
});

export const Token = z.object({
  id: z.uuid(),
  name: z.string(),
  nonce: z.string(),
  kind: z.enum(TOKEN_KINDS),
  tunnelQuota: z.int(),
  bandwidthLimitMbps: z.int(),
  allowedSubdomains: z.array(z.string()),
  projectSlug: z.string().nullable(),
  monthlyBudgetUsdCents: z.int().nullable(),
  spentUsdCents: z.int().describe("Spent in this month."),
  issuedAt: z.int().describe("Seconds since the epoch."),
  expiresAt: z.int(),
  revoked: z.boolean(),
  createdBy: z.uuid().nullable(),
  mintedByMasterId: z.uuid().nullable(),
});
export type Token = z.infer<typeof Token>;

export const MintedToken = Token.extend({
  wireBytes: z.string(),
  wireBytesLen: z.int(),
  bearer: z.string().optional().describe("Only for a master key."),
});
export type MintedToken = z.infer<typeof MintedToken>;

export const Budget = z.object({
  monthlyBudgetUsdCents: WholeNumber(0, MONTHLY_BUDGET_MAX_USD_CENTS)
    .nullable()
    .describe("null: no limit."),
});
export const BudgetResult = Budget.extend({ success: z.literal(true) });

export const Nonce = z.object({
  nonce: z.string().regex(/^[0-9a-f]{32}$/, "must be 32 hexadecimal digits"),
});
