/**
 * An agent reconnects to the tunnel that it serves, after a lost connection or a restart of the server. It already counts
 * towards its token's quota, so a single statement suffices: a thousand agents that reconnect at once do not wait for
 * a lock on their token's row.
 */
import { and, eq, getTableColumns, isNull, sql, type SQL } from "drizzle-orm";
import type { Database } from "../database.ts";
import type { RegisteredTunnel, RegistrationRequest } from "./registrations.ts";
import { findOverBudget } from "../tokens/spending.ts";
import { tokens } from "../tables/tokens.ts";
import { relays } from "../tables/networks.ts";
import { organizations, projects } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUndeletedTunnelIn } from "./undeleted-tunnels.ts";

/** @returns null when any condition does not hold; then the agent registers as a new one does. */
export async function resumeTunnel(
  { query }: Database,
  request: RegistrationRequest,
): Promise<RegisteredTunnel | null> {
  const { orgId, tokenNonce, resumeTunnelId, label, projectSlug, ttlSeconds } = request;
  // A time to live changes the tunnel's expiry, which only a registration does.
  if (resumeTunnelId === undefined || ttlSeconds !== undefined) return null;
  const isTcp = request.protocol === "tcp";
  if ((await findOverBudget(query, eq(tokens.nonce, tokenNonce))).length > 0) return null;
  const credential = query
    .select({ tokenId: tokens.id, plan: organizations.plan })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .where(
      and(
        eq(tokens.orgId, orgId),
        eq(tokens.nonce, tokenNonce),
        isNull(tokens.revokedAt),
        eq(organizations.approvalStatus, "approved"),
      ),
    )
    .as("holders");
  const [row] = await query
    .update(tunnels)
    .set({ protocol: request.protocol, localPort: request.localPort, lastSeenAt: sql`now()` })
    .from(credential)
    .innerJoin(projects, and(eq(projects.orgId, orgId), eq(projects.slug, projectSlug)))
    .where(
      and(
        isUndeletedTunnelIn(orgId),
        eq(tunnels.id, resumeTunnelId),
        eq(tunnels.projectId, projects.id),
        isNull(projects.deletedAt),
        eq(tunnels.subdomain, label),
        eq(tunnels.connectedTokenId, credential.tokenId),
        eq(tunnels.agentConnected, true),
        eq(tunnels.status, "active"),
        isNull(tunnels.stoppedAt),
        sql`(${tunnels.expiresAt} is null or ${tunnels.expiresAt} > now())`,
        sql`(${tunnels.protocol} = 'tcp') = ${isTcp}`,
        isTcp ? hasWantedPort(request.remotePort) : undefined,
      ),
    )
    .returning({
      ...getTableColumns(tunnels),
      plan: credential.plan,
      relayHost: sql<
        string | null
      >`(select ${relays.host} from ${relays} where ${relays.id} = ${tunnels.relayId})`,
    });
  if (!row) return null;
  const { plan, ...tunnel } = row;
  return { tunnel, plan };
}

/** The tunnel has the port that its agent wants, and the port is still in its relay's range. */
function hasWantedPort(wanted: number | undefined): SQL {
  const isWanted = wanted === undefined ? sql`true` : eq(tunnels.publicPort, wanted);
  return sql`${isWanted} and exists (select from ${relays} where ${relays.id} = ${tunnels.relayId}
    and ${tunnels.publicPort} between ${relays.firstPort} and ${relays.lastPort})`;
}
