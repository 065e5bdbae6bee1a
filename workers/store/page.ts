/** Lists are read newest first, a page at a time; `after` is the id of the last row of the page before. */
import { and, desc, eq, sql, type Placeholder, type SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { prepared, type Database, type PreparedStatement } from "./database.ts";
import type { Queries } from "./transaction.ts";

export interface Page {
  limit: number;
  after?: string | undefined;
}

/** Stands for the id that a list is read for, such as an organization's. */
export const SCOPE_ID = sql.placeholder("scopeId");

interface ListColumns {
  /** The list holds the rows in which this column is `SCOPE_ID`. */
  scope: PgColumn;
  /** Rows are ordered by their timestamp, then by their id. */
  timestamp: PgColumn;
  id: PgColumn;
}

/** The list of an organization's rows. */
export function inOrganization(
  table: PgTable & { orgId: PgColumn; id: PgColumn; createdAt: PgColumn },
): ListColumns {
  return { scope: table.orgId, timestamp: table.createdAt, id: table.id };
}

/** `after` names no row of this list, or no longer does: without the row, its position is unknown. */
export class UnknownPositionError extends Error {
  override name = "UnknownPositionError";
}

/** The part of Drizzle's query builder that a list needs. */
interface ListQuery<Rows> {
  orderBy(...columns: SQL[]): {
    limit(limit: Placeholder): { prepare(name: string): PreparedStatement<Rows> };
  };
}

/** @throws UnknownPositionError */
type ReadPage<Rows> = (
  db: Database,
  scopeId: string,
  page: Page,
  values?: Record<string, unknown>,
) => Promise<Rows>;

/**
 * A prepared statement that reads one page of a list.
 *
 * @param build selects the rows for which `isOnPage` holds; order and limit are added here.
 * @returns a function that takes the values of the statement's other placeholders last.
 */
export function preparedList<Rows extends readonly unknown[]>(
  name: string,
  columns: ListColumns,
  build: (query: Queries, isOnPage: SQL) => ListQuery<Rows>,
): ReadPage<Rows> {
  const statement = prepared((query) =>
    build(query, isOnPage(columns))
      .orderBy(desc(columns.timestamp), desc(columns.id))
      .limit(sql.placeholder("limit"))
      .prepare(name),
  );
  const { scope, id } = columns;
  const position = prepared((query) =>
    query
      .select({ id })
      .from(id.table)
      .where(and(eq(id, sql.placeholder("after")), eq(scope, SCOPE_ID)))
      .prepare(`${name}_position`),
  );
  return async (db, scopeId, { limit, after }, values = {}) => {
    const rows = await statement(db, { ...values, scopeId, limit, after: after ?? null });
    if (rows.length > 0 || after === undefined) return rows;
    const found = await position(db, { scopeId, after });
    if (found.length === 0) throw new UnknownPositionError();
    return rows;
  };
}

/**
 * After an id that is not in the scope, there are no rows. The bound repeats the condition for the timestamp alone,
 * without an `or`, so that PostgreSQL can start its index scan there, however deep the page is.
 */
function isOnPage({ scope, id, timestamp }: ListColumns): SQL {
  const after = sql`${sql.placeholder("after")}::uuid`;
  const last = (columns: SQL) =>
    sql`(select ${columns} from ${id.table} where ${and(eq(id, after), eq(scope, SCOPE_ID))})`;
  const bound = sql`case when ${after} is null then 'infinity' else ${last(sql`${timestamp}`)} end`;
  return and(
    eq(scope, SCOPE_ID),
    sql`${timestamp} <= ${bound}`,
    sql`(${after} is null or (${timestamp}, ${id}) < ${last(sql`${timestamp}, ${id}`)})`,
  )!;
}
