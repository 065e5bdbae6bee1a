/** Lists are read newest first, a page at a time; `after` is the id of the last row that was seen. */
import { and, eq, sql, type SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

export interface Page {
  limit: number;
  after?: string | undefined;
}

/** What the placeholders of a prepared list stand for. */
export function pageValues(scopeId: string, { limit, after = undefined }: Page) {
  return { scopeId, limit, after: after ?? null };
}

export interface PageColumns {
  /** Of whom the list is: `pageValues` is given the value. */
  scope: PgColumn;
  id: PgColumn;
  moment: PgColumn;
}

/**
 * A row that is not in the scope is no place to go on from: then nothing is older. The bound says the same
 * of the moment alone, without an `or`: it is what an index is entered by, however deep the page.
 */
export function isOnPageBy(table: PgTable, { scope, id, moment }: PageColumns): SQL | undefined {
  const scopeId = sql.placeholder("scopeId");
  const after = sql`${sql.placeholder("after")}::uuid`;
  const seen = (columns: SQL) =>
    sql`(select ${columns} from ${table} where ${and(eq(id, after), eq(scope, scopeId))})`;
  const bound = sql`case when ${after} is null then 'infinity' else ${seen(sql`${moment}`)} end`;
  return and(
    eq(scope, scopeId),
    sql`${moment} <= ${bound}`,
    sql`(${after} is null or (${moment}, ${id}) < ${seen(sql`${moment}, ${id}`)})`,
  );
}

/** What an organization has. */
export function isOnPage(
  table: PgTable & { id: PgColumn; orgId: PgColumn },
  moment: PgColumn,
): SQL | undefined {
  return isOnPageBy(table, { scope: table.orgId, id: table.id, moment });
}
