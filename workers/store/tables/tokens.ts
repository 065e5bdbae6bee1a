/** Capability tokens, and the device flow by which a machine gets one. */
import { sql } from "drizzle-orm";
import {
  bigint,
  check,
  index,
  integer,
  pgTable,
  text,
  uniqueIndex,
  uuid,
  type AnyPgColumn,
} from "drizzle-orm/pg-core";
import { timestamptz } from "./columns.ts";
import { users } from "./accounts.ts";
import { organizations, projects } from "./organizations.ts";
import { TOKEN_KINDS } from "../../../protocol/schemas/tokens.ts";

/** Capability tokens. The row has the claims of the signed bytes, never the bytes. */
export const tokens = pgTable(
  "tokens",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    createdBy: uuid().references(() => users.id, { onDelete: "set null" }),
    /**
     * The session that minted it, so that a password reset can revoke it. No foreign key: the session's row is deleted
     * earlier. null: minted without a session, or confirmed by its owner at a password reset.
     */
    sessionId: uuid(),
    /** 16 random bytes in hex: the token's name in paths and inside its signed bytes. */
    nonce: text().notNull(),
    kind: text({ enum: TOKEN_KINDS }).notNull(),
    name: text().notNull(),
    /** null: not restricted to a project. */
    projectId: uuid().references(() => projects.id),
    /** Exact labels or `*` patterns; empty: every name. */
    allowedSubdomains: text().array().notNull().default([]),
    bandwidthLimitMbps: integer().notNull(),
    tunnelQuota: integer().notNull(),
    monthlyBudgetUsdCents: bigint({ mode: "number" }),
    issuedAt: timestamptz().notNull(),
    expiresAt: timestamptz().notNull(),
    revokedAt: timestamptz(),
    mintedByMasterId: uuid().references((): AnyPgColumn => tokens.id),
    /** A token shares the lineage of the token that it replaces: their spending counts together. */
    lineageId: uuid().notNull().defaultRandom(),
  },
  (table) => [
    uniqueIndex("tokens_nonce_key").on(table.nonce),
    index("tokens_org_id_idx").on(table.orgId, table.issuedAt),
    /** For counting the tokens that are in force. */
    index("tokens_unrevoked_idx")
      .on(table.orgId, table.kind, table.expiresAt)
      .where(sql`${table.revokedAt} is null`),
    index("tokens_minted_by_master_id_idx").on(table.mintedByMasterId),
    index("tokens_project_id_idx").on(table.projectId),
    index("tokens_lineage_id_idx").on(table.lineageId),
    index("tokens_created_by_idx").on(table.createdBy),
    index("tokens_ended_at_idx").on(sql`least(${table.revokedAt}, ${table.expiresAt})`),
    check("tokens_kind", sql`${table.kind} in ('agent', 'master')`),
    check("tokens_nonce", sql`${table.nonce} ~ '^[0-9a-f]{32}$'`),
    check("tokens_bandwidth_limit_mbps", sql`${table.bandwidthLimitMbps} >= 1`),
    check("tokens_tunnel_quota", sql`${table.tunnelQuota} >= 0`),
    check(
      "tokens_monthly_budget_usd_cents",
      sql`${table.monthlyBudgetUsdCents} between 0 and 1000000000`,
    ),
  ],
);

/** A machine that waits for a user's approval (RFC 8628). */
export const deviceCodes = pgTable(
  "device_codes",
  {
    id: uuid().primaryKey().defaultRandom(),
    /** SHA-256 in hex of the machine's secret. */
    deviceCodeHash: text().notNull(),
    /** The code that the user enters: eight letters without a hyphen. */
    userCode: text().notNull(),
    label: text().notNull(),
    /** The machine's address. */
    ip: text(),
    expiresAt: timestamptz().notNull(),
    lastPolledAt: timestamptz(),
    /** The token minted by the approval; the machine collects it once. */
    tokenId: uuid().references(() => tokens.id),
    approvedAt: timestamptz(),
    deniedAt: timestamptz(),
    collectedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("device_codes_device_code_hash_key").on(table.deviceCodeHash),
    uniqueIndex("device_codes_user_code_key").on(table.userCode),
    index("device_codes_expires_at_idx").on(table.expiresAt),
    index("device_codes_token_id_idx").on(table.tokenId),
  ],
);
