import { and, eq, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

/** The row with this id, if it belongs to the organization: another organization's row is not found. */
export function isRowOfOrganization(
  table: { orgId: PgColumn; id: PgColumn },
  orgId: string,
  id: string,
): SQL {
  return and(eq(table.orgId, orgId), eq(table.id, id))!;
}
