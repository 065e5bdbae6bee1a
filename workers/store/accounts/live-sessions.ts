/** Sessions that have neither expired nor been revoked. */
import { and, eq, gt, isNull, sql, type SQL } from "drizzle-orm";
import type { Database } from "../database.ts";
import { sessions } from "../tables/sessions.ts";

export function isAlive(): SQL | undefined {
  return and(isNull(sessions.revokedAt), gt(sessions.expiresAt, sql`now()`));
}

/** Ignores the organization that the claims name. */
export async function isSessionAlive(
  { query }: Database,
  { sid, sub }: { sid: string; sub: string },
): Promise<boolean> {
  const rows = await query
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(eq(sessions.id, sid), eq(sessions.userId, sub), isAlive()));
  return rows.length > 0;
}
