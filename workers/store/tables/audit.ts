/** The audit log. */
import { sql } from "drizzle-orm";
import { index, jsonb, pgTable, text, uuid } from "drizzle-orm/pg-core";
import type { AuditResource } from "../../../protocol/audit/action-description.ts";
import type { AuditAction } from "../../../protocol/audit/audit-actions.ts";
import { timestamptz } from "./columns.ts";

/**
 * Append only: a trigger refuses every update, and every delete except those of `organizations/audit-retention.ts`. There
 * are no foreign keys, because events are kept longer than the rows that they name.
 */
export const auditEvents = pgTable(
  "audit_events",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid(),
    userId: uuid(),
    action: text().$type<AuditAction>().notNull(),
    resourceType: text().$type<AuditResource>().notNull(),
    resourceId: text().notNull(),
    ip: text(),
    metadata: jsonb().$type<Record<string, unknown>>().notNull().default({}),
    /** Events of one transaction have different times, in the order in which they were inserted. */
    createdAt: timestamptz()
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  (table) => [
    index("audit_events_org_id_idx").on(table.orgId, table.createdAt),
    index("audit_events_org_id_action_idx").on(table.orgId, table.action, table.createdAt),
    index("audit_events_org_id_user_id_idx").on(table.orgId, table.userId, table.createdAt),
    index("audit_events_org_id_ip_idx").on(table.orgId, table.ip, table.createdAt),
    index("audit_events_created_at_idx").on(table.createdAt),
    index("audit_events_user_id_idx").on(table.userId, table.createdAt),
  ],
);

export type AuditEvent = typeof auditEvents.$inferInsert;
