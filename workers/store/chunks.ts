/** Long lists in statements: the deletion of an organization changes, and writes an event for, everything that it had. */
import { sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

/** Per statement, in which PostgreSQL accepts 65,535 values. */
const INSERT_MAX_ROWS = 1_000;

/** Splits the rows, in order, into groups. @param maxRows of a group: by default as many as fit into one INSERT. */
export function splitIntoChunks<Row>(rows: Row[], maxRows = INSERT_MAX_ROWS): Row[][] {
  const count = Math.ceil(rows.length / maxRows);
  return Array.from({ length: count }, (_, at) => rows.slice(at * maxRows, (at + 1) * maxRows));
}

/** Whether a column has one of the values. There can be any number of them, because they are one parameter of the statement. */
export function isAmong(column: PgColumn, values: string[]): SQL {
  return sql`${column} = any(${sql.param(values)})`;
}
