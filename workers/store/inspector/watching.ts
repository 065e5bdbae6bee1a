/** A watcher whose session or token has ended is disconnected at once. */
import { and, eq, gt, inArray, isNull, sql } from "drizzle-orm";
import { isAlive } from "../accounts/live-sessions.ts";
import type { Database, UnitOfWork } from "../database.ts";
import { memberships } from "../tables/organizations.ts";
import { sessions } from "../tables/sessions.ts";
import { tokens } from "../tables/tokens.ts";

/** A session can watch every organization that its user belongs to. */
export async function enqueueWatchingEnded(
  { tx, enqueue }: UnitOfWork,
  userId: string,
  sessionIds: string[],
): Promise<void> {
  if (sessionIds.length === 0) return;
  const organizations = await tx
    .select({ orgId: memberships.orgId })
    .from(memberships)
    .where(eq(memberships.userId, userId));
  for (const { orgId } of organizations) {
    enqueue({ kind: "watching_ended", payload: { orgId, whose: { sessionIds } } });
  }
}

/**
 * @param ids of sessions and of agents' tokens.
 * @returns those that have not ended: the users of the sessions must be members of the organization, and the tokens its own.
 */
export async function findLiveWatchers(
  { query }: Database,
  orgId: string,
  ids: string[],
): Promise<string[]> {
  if (ids.length === 0) return [];
  const liveSessions = query
    .select({ id: sessions.id })
    .from(sessions)
    .innerJoin(memberships, eq(memberships.userId, sessions.userId))
    .where(and(inArray(sessions.id, ids), eq(memberships.orgId, orgId), isAlive()));
  const liveTokens = query
    .select({ id: tokens.id })
    .from(tokens)
    .where(
      and(
        inArray(tokens.id, ids),
        eq(tokens.orgId, orgId),
        eq(tokens.kind, "agent"),
        isNull(tokens.revokedAt),
        gt(tokens.expiresAt, sql`now()`),
      ),
    );
  const rows = await liveSessions.union(liveTokens);
  return rows.map(({ id }) => id);
}
