/** Revokes the tickets of credentials at every relay on which their organization has ports. */
import { and, eq, isNull } from "drizzle-orm";
import type { Revocation } from "../../../protocol/relay/link.ts";
import type { UnitOfWork } from "../database.ts";
import { relayPorts } from "../tables/networks.ts";

/** The name of the credential in a ticket that was issued to a user instead of an agent. */
export function toUserNonce(userId: string): string {
  return userId.replaceAll("-", "");
}

/** @param nonces of capability tokens, or of `toUserNonce`. */
export async function revokeTickets(
  { tx, enqueue }: UnitOfWork,
  orgId: string,
  nonces: string[],
): Promise<void> {
  if (nonces.length === 0) return;
  const ports = await tx
    .selectDistinct({ relayId: relayPorts.relayId, protocol: relayPorts.protocol })
    .from(relayPorts)
    .where(and(eq(relayPorts.orgId, orgId), isNull(relayPorts.releasedAt)));
  for (const { relayId, protocol } of ports) {
    for (const tokenNonce of nonces) {
      const revocation: Revocation = {
        type: "revoke",
        kind: protocol === "udp" ? "network" : "tunnel",
        tokenNonce,
        reason: "unauthorized",
        untilGeneration: Date.now(),
      };
      enqueue({ kind: "relay_revocation", payload: { relayId, revocation } });
    }
  }
}
