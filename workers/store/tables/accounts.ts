/** Who there is: people, the organizations they act for, and how they prove who they are. */
import { sql } from "drizzle-orm";
import {
  boolean,
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";

const moment = () => timestamp({ withTimezone: true });

export const users = pgTable(
  "users",
  {
    id: uuid().primaryKey().defaultRandom(),
    /** NFKC and lower case: one mailbox, one row. */
    email: text().notNull(),
    /** Argon2id in PHC form. null: this account signs in through a provider only. */
    passwordHash: text(),
    emailVerifiedAt: moment(),
    isSuperadmin: boolean().notNull().default(false),
    createdAt: moment().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("users_email_key").on(table.email),
    check("users_email_lower", sql`${table.email} = lower(${table.email})`),
  ],
);

export const organizations = pgTable(
  "organizations",
  {
    id: uuid().primaryKey().defaultRandom(),
    name: text().notNull(),
    slug: text().notNull(),
    plan: text({ enum: ["free", "pro", "team", "enterprise"] }).notNull(),
    approvalStatus: text({ enum: ["approved", "pending", "rejected"] }).notNull(),
    trialEndsAt: moment(),
    createdAt: moment().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("organizations_slug_key").on(table.slug),
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

export const sessions = pgTable(
  "sessions",
  {
    id: uuid().primaryKey().defaultRandom(),
    userId: uuid()
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    /** The organization that this session's access tokens act for. */
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    /** SHA-256 in hex of the one refresh secret that is good now, and of the one before it. */
    refreshHash: text().notNull(),
    previousRefreshHash: text(),
    rotatedAt: moment().notNull().defaultNow(),
    expiresAt: moment().notNull(),
    revokedAt: moment(),
    device: text().notNull(),
    ip: text().notNull(),
    createdAt: moment().notNull().defaultNow(),
    lastSeenAt: moment().notNull().defaultNow(),
  },
  (table) => [
    index("sessions_user_id_idx").on(table.userId),
    index("sessions_expires_at_idx").on(table.expiresAt),
  ],
);

/** At most one code of an account is good: asking for another replaces the row. */
export const emailCodes = pgTable(
  "email_codes",
  {
    userId: uuid()
      .primaryKey()
      .references(() => users.id, { onDelete: "cascade" }),
    /** Keyed hash in hex: six digits could be guessed from a plain one. */
    codeHash: text().notNull(),
    attempts: integer().notNull().default(0),
    expiresAt: moment().notNull(),
    consumedAt: moment(),
    createdAt: moment().notNull().defaultNow(),
  },
  (table) => [index("email_codes_expires_at_idx").on(table.expiresAt)],
);
