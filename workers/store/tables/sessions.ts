/** Signed-in sessions of people. */
import { index, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { users } from "./accounts.ts";
import { timestamptz } from "./columns.ts";
import { organizations } from "./organizations.ts";

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
    /** SHA-256 in hex of the valid refresh secret, and of the one before it. */
    refreshHash: text().notNull(),
    previousRefreshHash: text(),
    rotatedAt: timestamptz().notNull().defaultNow(),
    expiresAt: timestamptz().notNull(),
    revokedAt: timestamptz(),
    device: text().notNull(),
    ip: text().notNull(),
    createdAt: timestamptz().notNull().defaultNow(),
    /** When the user last confirmed their identity: by signing in, or with a password or code since. */
    authenticatedAt: timestamptz().notNull().defaultNow(),
    lastSeenAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    index("sessions_user_id_idx").on(table.userId),
    index("sessions_expires_at_idx").on(table.expiresAt),
  ],
);
