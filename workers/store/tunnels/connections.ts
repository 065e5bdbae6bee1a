/** Agents' connections have no rows. Only the end of one by a user is recorded, in the audit log. */
import type { Database } from "../database.ts";
import type { MemberActor } from "../locks.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUndeletedTunnel } from "./undeleted-tunnels.ts";

type ConnectionEnd = "ended" | "not_found";

/** @returns "not_found" when there is no such tunnel; an unknown agent is not an error. */
export async function endConnection(
  db: Database,
  actor: MemberActor,
  { agentId, tunnelId }: { agentId: string; tunnelId: string },
): Promise<ConnectionEnd> {
  return db.changeAs(
    actor,
    async ({ tx, audit, enqueue }) => {
      const [row] = await tx
        .select({ id: tunnels.id })
        .from(tunnels)
        .where(isUndeletedTunnel(actor.orgId, tunnelId));
      if (!row) return "not_found";
      audit(actor, "connection_ended", agentId, { tunnelId });
      enqueue({ kind: "connection_ended", payload: { tunnelId, agentId } });
      return "ended";
    },
    { requireDelivery: true },
  );
}
