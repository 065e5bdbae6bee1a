/**
 * Disconnects the clients of revoked tokens (`underpass connect`). A client may use another token of the organization than
 * the agent of its tunnel, and no row says which tunnel it is connected to: so all TCP tunnels of the organization are notified.
 */
import { and, eq } from "drizzle-orm";
import { splitIntoChunks } from "../chunks.ts";
import type { UnitOfWork } from "../database.ts";
import type { TokenClients } from "../object-messages.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUnendedTunnelIn } from "../tunnels/undeleted-tunnels.ts";

/** In one message, all of whose calls must succeed within seconds. */
export const TUNNELS_MAX = 100;
export const NONCES_MAX = 1_000;

export async function revokeClients(
  { tx, enqueue }: UnitOfWork,
  orgId: string,
  nonces: string[],
): Promise<void> {
  const rows = await tx
    .select({ id: tunnels.id })
    .from(tunnels)
    .where(and(isUnendedTunnelIn(orgId), eq(tunnels.protocol, "tcp")));
  const clients = { tokenNonces: nonces, tunnelIds: rows.map(({ id }) => id) };
  for (const payload of divideClients(clients)) enqueue({ kind: "clients_revoked", payload });
}

/** @returns the same in parts that are small enough for a message. */
export function divideClients({ tokenNonces, tunnelIds }: TokenClients): TokenClients[] {
  const nonceChunks = splitIntoChunks(tokenNonces, NONCES_MAX);
  return splitIntoChunks(tunnelIds, TUNNELS_MAX).flatMap((tunnelChunk) =>
    nonceChunks.map((nonceChunk) => ({ tokenNonces: nonceChunk, tunnelIds: tunnelChunk })),
  );
}
