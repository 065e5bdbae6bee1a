/** Whoever may no longer see what happens on tunnels stops seeing it at once. */
import { eq } from "drizzle-orm";
import type { Change } from "../database.ts";
import { memberships } from "../tables/organizations.ts";

/** A session can watch each organization that its person is a member of. */
export async function enqueueWatchingEnded(
  { tx, enqueue }: Change,
  userId: string,
  sessionIds: string[],
): Promise<void> {
  if (sessionIds.length === 0) return;
  const homes = await tx
    .select({ orgId: memberships.orgId })
    .from(memberships)
    .where(eq(memberships.userId, userId));
  for (const { orgId } of homes) {
    enqueue({ kind: "watching_ended", payload: { orgId, whose: { sessionIds } } });
  }
}
