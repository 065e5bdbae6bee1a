/** Lists are read newest first, a page at a time; `after` is the id of the last row that was seen. */
import { and, eq, sql, type SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

export interface Page {
  limit: number;
  after?: string | undefined;
}

/** A row that `orgId` does not own is no place to go on from: then nothing is older. */
export function olderThan(
  table: PgTable & { id: PgColumn; orgId: PgColumn },
  moment: PgColumn,
  orgId: string,
  { after }: Page,
): SQL | undefined {
  if (after === undefined) return undefined;
  const seen = sql`(select ${moment}, ${table.id} from ${table} where ${and(eq(table.id, after), eq(table.orgId, orgId))})`;
  return sql`(${moment}, ${table.id}) < ${seen}`;
}
