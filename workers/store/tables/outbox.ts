/** Messages of committed changes, until they are delivered. */
import { sql } from "drizzle-orm";
import { bigint, index, integer, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import type { OutboxKind } from "../outbox-messages.ts";
import { timestamptz } from "./columns.ts";

export const outbox = pgTable(
  "outbox",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    kind: text().$type<OutboxKind>().notNull(),
    payload: jsonb().notNull(),
    attempts: integer().notNull().default(0),
    nextAttemptAt: timestamptz().notNull().defaultNow(),
    /** Why the last delivery failed. */
    lastError: text(),
    /** Set after days without a delivery; such a message is not retried. */
    parkedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    index("outbox_next_attempt_at_idx").on(table.nextAttemptAt),
    index("outbox_mail_idx")
      .on(table.createdAt)
      .where(sql`${table.kind} = 'mail'`),
  ],
);
