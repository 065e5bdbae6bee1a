/**
 * An agent that comes back to the tunnel it serves, after a lost connection or a restart of the server. Its
 * place is counted already and its row is its own: one statement takes it in, so that a thousand who come
 * back at once need not take turns on the row of their token.
 */
import { and, eq, getTableColumns, isNull, sql, type SQL } from "drizzle-orm";
import type { Database } from "../database.ts";
import type { Registered, RegistrationRequest } from "./registrations.ts";
import { findOverBudget } from "../tokens/spending.ts";
import { tokens } from "../tables/tokens.ts";
import { relays } from "../tables/networks.ts";
import { organizations, projects } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import { liveTunnels } from "./live-tunnels.ts";

/** @returns null where anything else is so: then it registers like everybody. */
export async function resumeTunnel(
  { query }: Database,
  request: RegistrationRequest,
): Promise<Registered | null> {
  const { orgId, tokenNonce, resumeTunnelId, label, projectSlug, ttlSeconds } = request;
  // Another time to live is another end.
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
        liveTunnels(orgId),
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
  return { ok: tunnel, plan };
}

/** The tunnel has the port that its agent wants, and its relay still hands it out. */
function hasWantedPort(wanted: number | undefined): SQL {
  const isWanted = wanted === undefined ? sql`true` : eq(tunnels.publicPort, wanted);
  return sql`${isWanted} and exists (select from ${relays} where ${relays.id} = ${tunnels.relayId}
    and ${tunnels.publicPort} between ${relays.firstPort} and ${relays.lastPort})`;
}
