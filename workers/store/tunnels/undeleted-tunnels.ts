/** Conditions on tunnels that are not deleted. Every look-up for a caller uses them. */
import { and, eq, isNull, lt, ne, not, sql, type Placeholder, type SQL } from "drizzle-orm";
import { TUNNEL_STATUS_FRESH_MS } from "../../limits.ts";
import { ago } from "../clock.ts";
import { tunnels } from "../tables/tunnels.ts";

type Value = string | Placeholder;

/** The tunnels of an organization, expired ones included. */
export function isUndeletedTunnelIn(orgId: Value): SQL {
  return and(eq(tunnels.orgId, orgId), isNull(tunnels.deletedAt))!;
}

/** Tunnels that have not ended, of all organizations. */
export const isUnended = and(isNull(tunnels.deletedAt), ne(tunnels.status, "expired"))!;

/** Whether a tunnel's expiry has been reached, by the database's clock. */
export const isDue = sql<boolean>`coalesce(${tunnels.expiresAt} <= now(), false)`;

/** The tunnels of an organization that have not ended. */
export function isUnendedTunnelIn(orgId: string): SQL {
  return and(eq(tunnels.orgId, orgId), isUnended)!;
}

/** The tunnels of an organization that an agent may serve. */
export function isServableIn(orgId: string): SQL {
  return and(isUnendedTunnelIn(orgId), isNull(tunnels.stoppedAt), not(isDue))!;
}

/** Whether a tunnel's object has not reported for a while: the row may say "connected" although no agent is. */
export function isStatusStale(): SQL {
  return lt(tunnels.lastSeenAt, ago(TUNNEL_STATUS_FRESH_MS));
}

/** The tunnels that agents of a token serve, except the one that is registered: they count towards the token's quota. */
export function isOtherServedBy(tokenId: string, label: string): SQL {
  return and(
    eq(tunnels.connectedTokenId, tokenId),
    eq(tunnels.agentConnected, true),
    ne(tunnels.subdomain, label),
  )!;
}

/** One of an organization's tunnels. */
export function isUndeletedTunnel(orgId: Value, id: Value): SQL {
  return and(isUndeletedTunnelIn(orgId), eq(tunnels.id, id))!;
}
