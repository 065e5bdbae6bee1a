/** Sessions that have neither expired nor been revoked. */
import { and, eq, gt, inArray, isNull, sql, type SQL } from "drizzle-orm";
import type { Database } from "../database.ts";
import { sessions } from "../tables/sessions.ts";
import { memberships } from "../tables/organizations.ts";

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

/** @returns those of the sessions that are alive and whose users are members of the organization. */
export async function findLiveWatchers(
  { query }: Database,
  orgId: string,
  sessionIds: string[],
): Promise<string[]> {
  if (sessionIds.length === 0) return [];
  const rows = await query
    .select({ id: sessions.id })
    .from(sessions)
    .innerJoin(memberships, eq(memberships.userId, sessions.userId))
    .where(and(inArray(sessions.id, sessionIds), eq(memberships.orgId, orgId), isAlive()));
  return rows.map(({ id }) => id);
}
