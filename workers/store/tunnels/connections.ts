/** Agents' connections, which no row knows: what is written is that somebody ended one. */
import type { Database } from "../database.ts";
import type { MemberActor } from "../locks.ts";
import { tunnels } from "../tables/tunnels.ts";
import { liveTunnel } from "./live-tunnels.ts";

export type ConnectionEnd = "ended" | "not_found";

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
        .where(liveTunnel(actor.orgId, tunnelId));
      if (!row) return "not_found";
      audit(actor, "connection_ended", agentId, { tunnelId });
      enqueue({ kind: "connection_ended", payload: { tunnelId, agentId } });
      return "ended";
    },
    { requireDelivery: true },
  );
}
