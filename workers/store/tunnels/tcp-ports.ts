/**
 * The public TCP ports of tunnels of protocol `tcp`: reserved when a tunnel is created, released when it ends or becomes
 * private.
 */
import { and, eq, isNull, sql } from "drizzle-orm";
import { isAmong } from "../chunks.ts";
import type { Database, UnitOfWork } from "../database.ts";
import {
  isPortRefusal,
  releasePort,
  reservePort,
  type PortRefusal,
} from "../networks/relay-ports.ts";
import { findRelayHost } from "../networks/relays.ts";
import type { ApprovalRefusal } from "../organizations/approval.ts";
import { relayPorts } from "../tables/networks.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import { isUnendedTunnelIn } from "./undeleted-tunnels.ts";

interface WantedPort {
  relayId?: string | undefined;
  port?: number | undefined;
  /** The relay can't listen on it. */
  unusablePort?: number | undefined;
}

/** A tunnel, and the relay that its visitors connect to. */
export type TunnelWithRelay = TunnelRow & { relayHost: string | null };

/** @returns the updated tunnel. It keeps the port that it has, unless a different one is wanted. */
export async function reserveTunnelPort(
  change: UnitOfWork,
  tunnel: Pick<TunnelRow, "id" | "orgId">,
  wanted: WantedPort,
): Promise<TunnelWithRelay | PortRefusal> {
  const { tx } = change;
  const reserved = await reservePort(change, {
    protocol: "tcp",
    orgId: tunnel.orgId,
    ownerId: tunnel.id,
    relayId: wanted.relayId,
    wantedPort: wanted.port,
    unusablePort: wanted.unusablePort,
  });
  if (isPortRefusal(reserved)) return reserved;
  const { relayId, port: publicPort } = reserved;
  const [row] = await tx
    .update(tunnels)
    .set({ relayId, publicPort })
    .where(eq(tunnels.id, tunnel.id))
    .returning();
  return { ...row!, relayHost: await findRelayHost(tx, relayId) };
}

export type ReplacementRefusal = Extract<PortRefusal, "exhausted" | "share_used" | ApprovalRefusal>;

/**
 * Replaces a port that the operator has taken out of the relay's range, or that is the unusable one, while the tunnel is
 * served. It stays at its relay: the tunnel's object learns of another one only when an agent connects.
 */
export function replaceTunnelPort(
  db: Database,
  {
    orgId,
    id,
    ...wanted
  }: { orgId: string; id: string; relayId: string; unusablePort: number | undefined },
): Promise<TunnelWithRelay | ReplacementRefusal | "not_found"> {
  return db.transaction(async (change) => {
    const [tunnel] = await change.tx
      .select()
      .from(tunnels)
      .where(and(isUnendedTunnelIn(orgId), eq(tunnels.id, id)))
      .for("update");
    if (!tunnel) return "not_found";
    const reserved = await reserveTunnelPort(change, tunnel, wanted);
    if (!isPortRefusal(reserved)) return reserved;
    switch (reserved) {
      case "exhausted":
      case "share_used":
      case "organization_pending":
      case "organization_rejected":
        return reserved;
      default:
        throw new Error(`${JSON.stringify(reserved)} for any port of a tunnel's own relay`);
    }
  });
}

/** The name of the organization's tunnel that has a public port now. */
export async function findNameAtPort(
  { query }: Database,
  orgId: string,
  port: number,
): Promise<string | undefined> {
  const [row] = await query
    .select({ subdomain: tunnels.subdomain })
    .from(tunnels)
    .where(and(isUnendedTunnelIn(orgId), eq(tunnels.publicPort, port)))
    .limit(1);
  return row?.subdomain;
}

/** For a tunnel that becomes private. @returns the updated tunnel. */
export async function releaseTunnelPort(
  change: UnitOfWork,
  { id }: Pick<TunnelRow, "id">,
): Promise<TunnelWithRelay> {
  await releasePort(change, id);
  const [row] = await change.tx
    .update(tunnels)
    .set({ relayId: null, publicPort: null })
    .where(eq(tunnels.id, id))
    .returning();
  return { ...row!, relayHost: null };
}

/** For tunnels that end. Other organizations can reserve the ports after the cool-down. */
export async function releaseTunnelPorts({ tx }: UnitOfWork, tunnelIds: string[]): Promise<void> {
  if (tunnelIds.length === 0) return;
  await tx
    .update(relayPorts)
    .set({ releasedAt: sql`now()` })
    .where(
      and(
        eq(relayPorts.protocol, "tcp"),
        isAmong(relayPorts.ownerId, tunnelIds),
        isNull(relayPorts.releasedAt),
      ),
    );
}
