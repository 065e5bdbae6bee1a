/** Lists are read newest first, a page at a time; `after` is the id of the last row that was seen. */
import { and, eq, sql, type SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

export interface Page {
  limit: number;
  after?: string | undefined;
}

/** What the placeholders of a prepared list stand for. */
export function pageValues(orgId: string, { limit, after = undefined }: Page) {
  return { orgId, limit, after: after ?? null };
}

/** A row that the organization does not own is no place to go on from: then nothing is older. */
export function isOnPage(
  table: PgTable & { id: PgColumn; orgId: PgColumn },
  moment: PgColumn,
): SQL | undefined {
  const orgId = sql.placeholder("orgId");
  const after = sql`${sql.placeholder("after")}::uuid`;
  const seen = sql`(select ${moment}, ${table.id} from ${table} where ${and(eq(table.id, after), eq(table.orgId, orgId))})`;
  return and(eq(table.orgId, orgId), sql`(${after} is null or (${moment}, ${table.id}) < ${seen})`);
}
