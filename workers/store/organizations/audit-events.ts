/** Reads the audit log: an organization's events, and a user's own. */
import { and, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { AuditResource } from "../../../protocol/schemas/organizations/audit-actions.ts";
import type { Database } from "../database.ts";
import { inOrganization, preparedList, type Page } from "../page.ts";
import { users } from "../tables/accounts.ts";
import { auditEvents } from "../tables/audit.ts";

const COLUMNS = {
  id: auditEvents.id,
  createdAt: auditEvents.createdAt,
  orgId: auditEvents.orgId,
  action: auditEvents.action,
  resourceType: auditEvents.resourceType,
  resourceId: auditEvents.resourceId,
  userEmail: users.email,
  ip: auditEvents.ip,
  metadata: auditEvents.metadata,
};

export type AuditEventRow = Pick<
  typeof auditEvents.$inferSelect,
  "id" | "createdAt" | "orgId" | "action" | "resourceType" | "resourceId" | "ip" | "metadata"
> & { userEmail: string | null };

export interface AuditEventFilter {
  since?: Date | undefined;
  /** Only events before it. */
  until?: Date | undefined;
  action?: string | undefined;
  actor?: { id: string } | { email: string } | undefined;
  ip?: string | undefined;
  /** Text that the event contains, in any case. */
  text?: string | undefined;
}

/** On lines of their own, so that a text is found within one of them only. Actions are found in words too. */
const SEARCHED_TEXT = sql`concat_ws(E'\\n', ${auditEvents.action}, replace(${auditEvents.action}, '_', ' '),
  ${users.email}, ${auditEvents.resourceId}, ${auditEvents.metadata}::text)`;

const organizationEvents = preparedList(
  "list_events",
  inOrganization(auditEvents),
  (query, isOnPage) =>
    query
      .select(COLUMNS)
      .from(auditEvents)
      .leftJoin(users, eq(users.id, auditEvents.userId))
      .where(
        and(
          isOnPage,
          // A number, because PostgreSQL can't parse every year that a JavaScript timestamp can have.
          ifGiven(
            "since",
            (ms) => sql`${auditEvents.createdAt} >= to_timestamp(${ms}::float8 / 1000)`,
          ),
          ifGiven(
            "until",
            (ms) => sql`${auditEvents.createdAt} < to_timestamp(${ms}::float8 / 1000)`,
          ),
          ifGiven("action", (action) => sql`${auditEvents.action} = ${action}::text`),
          ifGiven("actorId", (id) => sql`${auditEvents.userId} = ${id}::uuid`),
          ifGiven("actorEmail", (email) => sql`${users.email} = ${email}::text`),
          ifGiven("ip", (ip) => sql`${auditEvents.ip} = ${ip}::text`),
          ifGiven("text", (text) => sql`strpos(lower(${SEARCHED_TEXT}), lower(${text}::text)) > 0`),
        ),
      ),
);

function ifGiven(name: string, condition: (value: SQL) => SQL): SQL {
  const value = sql`${sql.placeholder(name)}`;
  return sql`(${value}::text is null or ${condition(value)})`;
}

/** Newest first. */
export function listAuditEvents(
  db: Database,
  orgId: string,
  { since, until, action, actor, ip, text, ...page }: Page & AuditEventFilter,
): Promise<AuditEventRow[]> {
  return organizationEvents(db, orgId, page, {
    since: since?.getTime() ?? null,
    until: until?.getTime() ?? null,
    ip: ip ?? null,
    text: text ?? null,
    action: action ?? null,
    actorId: actor && "id" in actor ? actor.id : null,
    actorEmail: actor && "email" in actor ? actor.email : null,
  });
}

/** Events about these show a misuse of an account; other events record its daily use. */
const SECURITY_RESOURCES: AuditResource[] = ["user", "session", "device", "token", "invitation"];

const personalEvents = preparedList(
  "list_personal_events",
  { ...inOrganization(auditEvents), scope: auditEvents.userId },
  (query, isOnPage) =>
    query
      .select(COLUMNS)
      .from(auditEvents)
      .leftJoin(users, eq(users.id, auditEvents.userId))
      .where(and(isOnPage, inArray(auditEvents.resourceType, SECURITY_RESOURCES))),
);

/** Newest first. */
export function listPersonalEvents(
  db: Database,
  userId: string,
  page: Page,
): Promise<AuditEventRow[]> {
  return personalEvents(db, userId, page);
}
