/** Organizations, their members, invitations and projects. */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  index,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";
import { ROLES } from "../../../protocol/roles.ts";
import { isIn } from "./checks.ts";
import { timestamptz, toMailbox } from "./columns.ts";
import { users } from "./accounts.ts";
import { PLANS } from "../../../protocol/plans.ts";
import { APPROVAL_STATUSES } from "../../../protocol/schemas/organizations/organizations.ts";

export const organizations = pgTable(
  "organizations",
  {
    id: uuid().primaryKey().defaultRandom(),
    name: text().notNull(),
    slug: text().notNull(),
    plan: text({ enum: PLANS }).notNull(),
    approvalStatus: text({ enum: APPROVAL_STATUSES }).notNull(),
    trialEndsAt: timestamptz(),
    /** For the traffic of all tokens together. null: no limit. */
    monthlyBudgetUsdCents: bigint({ mode: "number" }),
    deletedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("organizations_slug_key")
      .on(table.slug)
      .where(sql`${table.deletedAt} is null`),
    check(
      "organizations_monthly_budget_usd_cents",
      sql`${table.monthlyBudgetUsdCents} between 0 and 1000000000`,
    ),
    check("organizations_plan", isIn(table.plan, PLANS)),
    check(
      "organizations_approval_status",
      sql`${table.approvalStatus} in ('approved', 'pending', 'rejected')`,
    ),
  ],
);

export const memberships = pgTable(
  "memberships",
  {
    userId: uuid()
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    role: text({ enum: ROLES }).notNull(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.orgId] }),
    index("memberships_org_id_created_at_idx").on(table.orgId, table.createdAt),
    check("memberships_role", isIn(table.role, ROLES.toReversed())),
  ],
);

export const invitations = pgTable(
  "invitations",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    /** As `users.email`: only the account with this address can accept. */
    email: text().notNull(),
    role: text({ enum: ROLES }).notNull(),
    /** SHA-256 in hex. */
    tokenHash: text().notNull(),
    invitedBy: uuid().references(() => users.id, { onDelete: "set null" }),
    expiresAt: timestamptz().notNull(),
    acceptedAt: timestamptz(),
    revokedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("invitations_token_hash_key").on(table.tokenHash),
    uniqueIndex("invitations_open_key")
      .on(table.orgId, table.email)
      .where(sql`${table.acceptedAt} is null and ${table.revokedAt} is null`),
    index("invitations_org_id_idx").on(table.orgId, table.createdAt),
    index("invitations_expires_at_idx").on(table.expiresAt),
    index("invitations_mailbox_idx").on(toMailbox(table.email), table.createdAt),
    check("invitations_role", isIn(table.role, ROLES.toReversed())),
  ],
);

export const projects = pgTable(
  "projects",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    slug: text().notNull(),
    name: text().notNull(),
    isDefault: boolean().notNull().default(false),
    deletedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("projects_org_id_slug_key")
      .on(table.orgId, table.slug)
      .where(sql`${table.deletedAt} is null`),
    index("projects_org_id_idx")
      .on(table.orgId, table.createdAt)
      .where(sql`${table.deletedAt} is null`),
    index("projects_deleted_at_idx")
      .on(table.deletedAt)
      .where(sql`${table.deletedAt} is not null`),
    uniqueIndex("projects_default_key")
      .on(table.orgId)
      .where(sql`${table.isDefault}`),
    check("projects_slug", sql`${table.slug} ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'`),
    check(
      "projects_default_stays",
      sql`not (${table.isDefault} and ${table.deletedAt} is not null)`,
    ),
  ],
);

export type OrganizationRow = typeof organizations.$inferSelect;
