/**
 * An agent reconnects to the tunnel that it serves, after a lost connection or a restart of the server. It already counts
 * towards its token's quota, so a single statement suffices: a thousand agents that reconnect at once do not wait for
 * a lock on their token's row.
 */
import { and, eq, getTableColumns, isNull, sql, type SQL } from "drizzle-orm";
import type { Database } from "../database.ts";
import type { RegisteredTunnel, RegistrationRequest } from "./registrations.ts";
import { relays } from "../tables/networks.ts";
import { tunnels } from "../tables/tunnels.ts";
import { findOwner } from "./tunnel-owner.ts";
import { isServableIn } from "./undeleted-tunnels.ts";

/** @returns null when any condition does not hold; then the agent registers as a new one does. */
export async function resumeTunnel(
  db: Database,
  request: RegistrationRequest,
): Promise<RegisteredTunnel | null> {
  const { orgId, resumeTunnelId, label, ttlSeconds, protocol, localPort } = request;
  // A time to live changes the tunnel's expiry, which only a registration does.
  if (resumeTunnelId === undefined || ttlSeconds !== undefined) return null;
  const owner = await findOwner(db, request);
  if (!owner) return null;
  const isTcp = protocol === "tcp";
  const [tunnel] = await db.query
    .update(tunnels)
    .set({ protocol, localPort, lastSeenAt: sql`now()` })
    .where(
      and(
        isServableIn(orgId),
        eq(tunnels.id, resumeTunnelId),
        eq(tunnels.projectId, owner.projectId),
        eq(tunnels.subdomain, label),
        eq(tunnels.connectedTokenId, owner.tokenId),
        eq(tunnels.agentConnected, true),
        eq(tunnels.status, "active"),
        sql`(${tunnels.protocol} = 'tcp') = ${isTcp}`,
        isTcp ? hasWantedPort(request) : undefined,
      ),
    )
    .returning({
      ...getTableColumns(tunnels),
      relayHost: sql<
        string | null
      >`(select ${relays.host} from ${relays} where ${relays.id} = ${tunnels.relayId})`,
    });
  return tunnel ? { tunnel, plan: owner.plan } : null;
}

/** The tunnel has the port that its agent wants, and the port is still in its relay's range; a private one has none. */
function hasWantedPort({ isPrivate, remotePort: wanted }: RegistrationRequest): SQL {
  if (isPrivate) return isNull(tunnels.publicPort);
  const isWanted = wanted === undefined ? sql`true` : eq(tunnels.publicPort, wanted);
  return sql`${isWanted} and exists (select from ${relays} where ${relays.id} = ${tunnels.relayId}
    and ${tunnels.publicPort} between ${relays.firstPort} and ${relays.lastPort})`;
}
