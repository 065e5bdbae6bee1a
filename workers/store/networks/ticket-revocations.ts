/** Revokes the tickets of credentials at every relay on which their organization has ports. */
import { and, eq, isNull } from "drizzle-orm";
import type { Revocation } from "../../../protocol/relay/link.ts";
import type { UnitOfWork } from "../database.ts";
import { relayPorts } from "../tables/networks.ts";

/** The name of the credential in a ticket that was issued to a user instead of an agent. */
export function toUserNonce(userId: string): string {
  return userId.replaceAll("-", "");
}

/** Also refuses tickets that are being signed at the same time: a revoked token never gets a valid one again. */
export function revokeTicketsOfTokens(
  change: UnitOfWork,
  orgId: string,
  nonces: string[],
): Promise<void> {
  return revokeTickets(change, orgId, { nonces, untilGeneration: Number.MAX_SAFE_INTEGER });
}

/** The user may get valid tickets again, with another role or after another invitation. */
export function revokeTicketsOfUser(
  change: UnitOfWork,
  orgId: string,
  userId: string,
): Promise<void> {
  const nonces = [toUserNonce(userId)];
  return revokeTickets(change, orgId, { nonces, untilGeneration: Date.now() });
}

async function revokeTickets(
  { tx, enqueue }: UnitOfWork,
  orgId: string,
  { nonces, untilGeneration }: { nonces: string[]; untilGeneration: number },
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
        untilGeneration,
      };
      enqueue({ kind: "relay_revocation", payload: { relayId, revocation } });
    }
  }
}
