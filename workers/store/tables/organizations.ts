/** Organizations: who belongs to them, and who is asked to. */
import { sql } from "drizzle-orm";
import {
  check,
  index,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";
import { users } from "./accounts.ts";

const moment = () => timestamp({ withTimezone: true });

export const organizations = pgTable(
  "organizations",
  {
    id: uuid().primaryKey().defaultRandom(),
    name: text().notNull(),
    slug: text().notNull(),
    plan: text({ enum: ["free", "pro", "team", "enterprise"] }).notNull(),
    approvalStatus: text({ enum: ["approved", "pending", "rejected"] }).notNull(),
    trialEndsAt: moment(),
    deletedAt: moment(),
    createdAt: moment().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("organizations_slug_key")
      .on(table.slug)
      .where(sql`${table.deletedAt} is null`),
    check("organizations_plan", sql`${table.plan} in ('free', 'pro', 'team', 'enterprise')`),
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
    role: text({ enum: ["owner", "admin", "member", "viewer"] }).notNull(),
    createdAt: moment().notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.orgId] }),
    index("memberships_org_id_idx").on(table.orgId),
    check("memberships_role", sql`${table.role} in ('owner', 'admin', 'member', 'viewer')`),
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
    role: text({ enum: ["owner", "admin", "member", "viewer"] }).notNull(),
    /** SHA-256 in hex. */
    tokenHash: text().notNull(),
    invitedBy: uuid().references(() => users.id, { onDelete: "set null" }),
    expiresAt: moment().notNull(),
    acceptedAt: moment(),
    revokedAt: moment(),
    createdAt: moment().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("invitations_token_hash_key").on(table.tokenHash),
    uniqueIndex("invitations_open_key")
      .on(table.orgId, table.email)
      .where(sql`${table.acceptedAt} is null and ${table.revokedAt} is null`),
    index("invitations_org_id_idx").on(table.orgId, table.createdAt),
    index("invitations_expires_at_idx").on(table.expiresAt),
    check("invitations_role", sql`${table.role} in ('owner', 'admin', 'member', 'viewer')`),
  ],
);
