/**
 * Disconnects the clients of revoked tokens (`underpass connect`). A client may use another token of the organization than
 * the agent of its tunnel, and no row says which tunnel it is connected to: so all TCP tunnels of the organization are told.
 */
import { and, eq } from "drizzle-orm";
import { splitIntoChunks } from "../chunks.ts";
import type { UnitOfWork } from "../database.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUnendedTunnelIn } from "../tunnels/undeleted-tunnels.ts";

export async function revokeClients(
  { tx, enqueue }: UnitOfWork,
  orgId: string,
  nonces: string[],
): Promise<void> {
  const rows = await tx
    .select({ id: tunnels.id })
    .from(tunnels)
    .where(and(isUnendedTunnelIn(orgId), eq(tunnels.protocol, "tcp")));
  if (rows.length === 0) return;
  const tunnelIds = rows.map(({ id }) => id);
  for (const tokenNonces of splitIntoChunks(nonces)) {
    enqueue({ kind: "clients_revoked", payload: { tokenNonces, tunnelIds } });
  }
}
