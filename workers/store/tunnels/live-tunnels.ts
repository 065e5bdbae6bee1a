import { and, eq, isNull, type Placeholder, type SQL } from "drizzle-orm";
import { tunnels } from "../tables/tunnels.ts";

type Value = string | Placeholder;

/** The tunnels of an organization that are not deleted: every look-up for a caller begins with it. */
export function liveTunnels(orgId: Value): SQL {
  return and(eq(tunnels.orgId, orgId), isNull(tunnels.deletedAt))!;
}

export function liveTunnel(orgId: Value, id: Value): SQL {
  return and(liveTunnels(orgId), eq(tunnels.id, id))!;
}
