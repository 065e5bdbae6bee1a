/** Capability tokens. */
import { z } from "zod";
import {
  TOKEN_BANDWIDTH_DEFAULT_MBPS,
  TOKEN_NAME_MAX_CHARS,
  TOKEN_SUBDOMAINS_MAX,
  TOKEN_TTL_DEFAULT_HOURS,
  TOKEN_TTL_MAX_HOURS,
  TOKEN_TUNNELS_DEFAULT,
} from "../limits.ts";
import { LABEL_PATTERN } from "../names.ts";
import { Line } from "./scalars.ts";

/** Columns of 32 bits. */
const INT32_MAX = 2 ** 31 - 1;

export const MintToken = z.object({
  name: Line(TOKEN_NAME_MAX_CHARS),
  ttlHours: z.int().min(1).max(TOKEN_TTL_MAX_HOURS).default(TOKEN_TTL_DEFAULT_HOURS),
  allowedSubdomains: z
    .array(
      z
        .string()
        .regex(LABEL_PATTERN, "must be lower-case letters, digits, hyphens and * wildcards"),
    )
    .max(TOKEN_SUBDOMAINS_MAX)
    .default([]),
  bandwidthLimitMbps: z.int().min(1).max(INT32_MAX).default(TOKEN_BANDWIDTH_DEFAULT_MBPS),
  tunnelQuota: z.int().min(1).max(INT32_MAX).default(TOKEN_TUNNELS_DEFAULT),
});

export const Token = z.object({
  id: z.uuid(),
  name: z.string(),
  nonce: z.string(),
  kind: z.enum(["agent", "master"]),
  tunnelQuota: z.int(),
  bandwidthLimitMbps: z.int(),
  allowedSubdomains: z.array(z.string()),
  projectSlug: z.string().nullable(),
  monthlyBudgetUsdCents: z.int().nullable(),
  /** Seconds since the epoch. */
  issuedAt: z.int(),
  expiresAt: z.int(),
  revoked: z.boolean(),
});
export type Token = z.infer<typeof Token>;

export const MintedToken = Token.extend({ wireBytes: z.string(), wireBytesLen: z.int() });
export type MintedToken = z.infer<typeof MintedToken>;
export const Nonce = z.object({ nonce: z.string().regex(/^[0-9a-f]{32}$/) });
