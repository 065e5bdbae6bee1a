/** What happened and what is still to be told. */
import { sql } from "drizzle-orm";
import { bigint, check, index, integer, jsonb, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { timestamptz } from "./columns.ts";

/** Append only: a trigger refuses every update and delete. No foreign keys: it outlives what it tells of. */
export const auditEvents = pgTable(
  "audit_events",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid(),
    userId: uuid(),
    action: text().notNull(),
    resourceType: text().notNull(),
    resourceId: text().notNull(),
    ip: text(),
    metadata: jsonb().$type<Record<string, unknown>>().notNull().default({}),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    index("audit_events_org_id_idx").on(table.orgId, table.createdAt),
    index("audit_events_org_id_action_idx").on(table.orgId, table.action, table.createdAt),
    index("audit_events_user_id_idx").on(table.userId, table.createdAt),
  ],
);

const OUTBOX_KINDS = [
  "hostname",
  "tunnel_retired",
  "tunnel_stopping",
  "tunnel_ends",
  "tunnel_settings",
  "tunnel_capturing",
  "tunnel_maintenance",
  "connection_ended",
  "tunnel_captures_cleared",
  "watching_ended",
  "token_revoked",
  "token_over_budget",
  "custom_hostname",
  "receiver_settings",
  "receiver_retired",
  "subscription_end",
  "relay_revocation",
  "mail",
] as const;

/** What must reach an object or a mailbox once the change that wrote it has committed. */
export const outbox = pgTable(
  "outbox",
  {
    id: bigint({ mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    kind: text({ enum: OUTBOX_KINDS }).notNull(),
    payload: jsonb().notNull(),
    attempts: integer().notNull().default(0),
    nextAttemptAt: timestamptz().notNull().defaultNow(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    index("outbox_next_attempt_at_idx").on(table.nextAttemptAt),
    check(
      "outbox_kind",
      sql`${table.kind} in ('hostname', 'tunnel_retired', 'tunnel_stopping', 'tunnel_ends', 'tunnel_settings', 'tunnel_capturing', 'tunnel_maintenance', 'connection_ended', 'watching_ended', 'tunnel_captures_cleared', 'token_revoked', 'token_over_budget', 'custom_hostname', 'subscription_end', 'receiver_settings', 'receiver_retired', 'relay_revocation', 'mail')`,
    ),
  ],
);

/** What this database knows of its installation: fingerprints of the keys it was written with. */
export const installation = pgTable("installation", {
  key: text().primaryKey(),
  value: text().notNull(),
});
