/** A watcher whose session has ended is disconnected at once. */
import { eq } from "drizzle-orm";
import type { UnitOfWork } from "../database.ts";
import { memberships } from "../tables/organizations.ts";

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
