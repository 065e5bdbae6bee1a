/** Webhook receivers. Their deliveries are stored in each receiver's object. */
import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { timestamptz } from "./columns.ts";
import { organizations } from "./organizations.ts";

export const webhookReceivers = pgTable(
  "webhook_receivers",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    name: text().notNull(),
    validator: text({
      enum: ["code_host", "chat_app", "payments", "generic_hmac_sha256"],
    }).notNull(),
    /** Encrypted, like the previous secret: a hash would not do, because signatures are verified with the secret itself. */
    secret: text().notNull(),
    previousSecret: text(),
    /** Until when the previous secret is accepted. */
    previousSecretUntil: timestamptz(),
    /** Version of the settings that its object receives. */
    version: integer().notNull().default(1),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    index("webhook_receivers_org_id_idx").on(table.orgId, table.createdAt),
    index("webhook_receivers_previous_secret_until_idx")
      .on(table.previousSecretUntil)
      .where(sql`${table.previousSecretUntil} is not null`),
    check(
      "webhook_receivers_validator",
      sql`${table.validator} in ('code_host', 'chat_app', 'payments', 'generic_hmac_sha256')`,
    ),
    check(
      "webhook_receivers_previous_secret",
      sql`(${table.previousSecret} is null) = (${table.previousSecretUntil} is null)`,
    ),
  ],
);
