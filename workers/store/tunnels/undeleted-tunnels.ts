/** Conditions on tunnels that are not deleted. Every look-up for a caller uses them. */
import { and, eq, isNull, ne, type Placeholder, type SQL } from "drizzle-orm";
import { tunnels } from "../tables/tunnels.ts";

type Value = string | Placeholder;

/** The tunnels of an organization, expired ones included. */
export function isUndeletedTunnelIn(orgId: Value): SQL {
  return and(eq(tunnels.orgId, orgId), isNull(tunnels.deletedAt))!;
}

/** The tunnels of an organization that have not ended. */
export function isUnendedTunnelIn(orgId: Value): SQL {
  return and(isUndeletedTunnelIn(orgId), ne(tunnels.status, "expired"))!;
}

/** One of an organization's tunnels. */
export function isUndeletedTunnel(orgId: Value, id: Value): SQL {
  return and(isUndeletedTunnelIn(orgId), eq(tunnels.id, id))!;
}
