/** Agents' connections, which no row knows: what is written is that somebody ended one. */
import { and, eq, isNull } from "drizzle-orm";
import type { Database } from "../database.ts";
import { holdsRole, type MemberActor } from "../locks.ts";
import { tunnels } from "../tables/tunnels.ts";

/** `ended_unheard`: its tunnel will hear of it, but has not yet. */
export type ConnectionEnd = "ended" | "ended_unheard" | "not_found" | "role_changed";

export async function endConnection(
  db: Database,
  actor: MemberActor,
  { agentId, tunnelId }: { agentId: string; tunnelId: string },
): Promise<ConnectionEnd> {
  const { result, arrived } = await db.changeAndTell(async ({ tx, audit, tell }) => {
    if (!(await holdsRole(tx, actor))) return "role_changed";
    const [row] = await tx
      .select({ id: tunnels.id })
      .from(tunnels)
      .where(
        and(eq(tunnels.orgId, actor.orgId), eq(tunnels.id, tunnelId), isNull(tunnels.deletedAt)),
      );
    if (!row) return "not_found";
    const { orgId, userId, ip } = actor;
    audit({
      orgId,
      userId,
      ip,
      action: "connection_ended",
      resourceType: "connection",
      resourceId: agentId,
      metadata: { tunnelId },
    });
    tell({ kind: "connection_ended", payload: { tunnelId, agentId } });
    return "ended";
  });
  return result === "ended" && !arrived ? "ended_unheard" : result;
}
