/** Reads the audit log: an organization's events, and a user's own. */
import { and, desc, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { AuditResource } from "../../../protocol/audit/action-description.ts";
import { AUDIT_SEARCH_MAX_EVENTS } from "../../limits.ts";
import type { Database } from "../database.ts";
import { inOrganization, preparedList, type Page } from "../page.ts";
import { users } from "../tables/accounts.ts";
import { auditEvents } from "../tables/audit.ts";
import type { Queries } from "../transaction.ts";

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

interface AuditEventFilter {
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

/** Times are numbers, because PostgreSQL can't parse every year that a JavaScript timestamp can have. */
const toTimestamp = (ms: SQL) => sql`to_timestamp(${ms}::float8 / 1000)`;

/** What the filters require of an event, in terms of the placeholders of their values. */
const CONDITIONS = {
  since: (ms: SQL) => sql`${auditEvents.createdAt} >= ${toTimestamp(ms)}`,
  until: (ms: SQL) => sql`${auditEvents.createdAt} < ${toTimestamp(ms)}`,
  action: (action: SQL) => sql`${auditEvents.action} = ${action}`,
  actorId: (id: SQL) => sql`${auditEvents.userId} = ${id}::uuid`,
  actorEmail: (email: SQL) =>
    sql`${auditEvents.userId} = (select ${users.id} from ${users} where ${users.email} = ${email})`,
  ip: (ip: SQL) => sql`${auditEvents.ip} = ${ip}`,
};

type Filter = keyof typeof CONDITIONS;
type ListEvents = ReturnType<typeof prepareList>;

/** Each combination of filters has a statement of its own, because indexes serve some of them. */
const listsByName = new Map<string, ListEvents>();

function getList(filters: Filter[], isSearch: boolean): ListEvents {
  const name = ["list_events", ...filters, ...(isSearch ? ["text"] : [])].join("_");
  const list = listsByName.get(name) ?? prepareList(name, filters, isSearch);
  listsByName.set(name, list);
  return list;
}

function prepareList(name: string, filters: Filter[], isSearch: boolean) {
  return preparedList(name, inOrganization(auditEvents), (query, isOnPage) => {
    const isListed = and(
      isOnPage,
      ...filters.map((filter) => CONDITIONS[filter](sql`${sql.placeholder(filter)}`)),
    );
    return query
      .select(COLUMNS)
      .from(auditEvents)
      .leftJoin(users, eq(users.id, auditEvents.userId))
      .where(isSearch ? and(isListed, isFound(query, isListed)) : isListed);
  });
}

/** Whether an event is among those that a search reads, and contains the text. */
function isFound(query: Queries, isListed: SQL | undefined): SQL {
  const newestUnread = query
    .select({ createdAt: auditEvents.createdAt })
    .from(auditEvents)
    .where(isListed)
    .orderBy(desc(auditEvents.createdAt))
    .offset(AUDIT_SEARCH_MAX_EVENTS)
    .limit(1);
  return sql`${auditEvents.createdAt} > coalesce((${newestUnread}), '-infinity')
    and strpos(lower(${SEARCHED_TEXT}), lower(${sql.placeholder("text")})) > 0`;
}

/** Newest first. */
export function listAuditEvents(
  db: Database,
  orgId: string,
  { since, until, action, actor, ip, text, limit, after }: Page & AuditEventFilter,
): Promise<AuditEventRow[]> {
  const values = {
    since: since?.getTime(),
    until: until?.getTime(),
    action,
    actorId: actor && "id" in actor ? actor.id : undefined,
    actorEmail: actor && "email" in actor ? actor.email : undefined,
    ip,
  } satisfies Record<Filter, unknown>;
  const filters = (Object.keys(values) as Filter[]).filter((name) => values[name] !== undefined);
  const list = getList(filters, text !== undefined);
  return list(db, orgId, { limit, after }, { ...values, text });
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
