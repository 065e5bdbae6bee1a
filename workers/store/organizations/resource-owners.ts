/** Which of a user's organizations has a resource: for a link to a resource of an organization that is not selected. */
import { and, eq, isNull, sql } from "drizzle-orm";
import { getTunnelSuffixOfCapture } from "../../../protocol/captures/id.ts";
import { prepared, type Database } from "../database.ts";
import { privateNetworks } from "../tables/networks.ts";
import { memberships, organizations } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import { webhookReceivers } from "../tables/webhooks.ts";
import type { OrganizationWithRole } from "./organization-with-role.ts";

const resourceId = sql`${sql.placeholder("resourceId")}::uuid`;
const userId = sql.placeholder("userId");

const owners = prepared((query) => {
  const ofNetwork = query
    .select({ orgId: privateNetworks.orgId })
    .from(privateNetworks)
    .where(eq(privateNetworks.id, resourceId));
  const ofReceiver = query
    .select({ orgId: webhookReceivers.orgId })
    .from(webhookReceivers)
    .where(eq(webhookReceivers.id, resourceId));
  // A tunnel's captured requests have ids that end like its own.
  const ofTunnel = query
    .select({ orgId: tunnels.orgId })
    .from(memberships)
    .innerJoin(tunnels, eq(tunnels.orgId, memberships.orgId))
    .where(
      and(
        eq(memberships.userId, userId),
        isNull(tunnels.deletedAt),
        sql`right(${tunnels.id}::text, 12) = ${sql.placeholder("tunnelSuffix")}`,
      ),
    );
  const owner = ofNetwork.unionAll(ofReceiver).unionAll(ofTunnel).as("owner");
  return query
    .selectDistinct({ organization: organizations, role: memberships.role })
    .from(owner)
    .innerJoin(memberships, eq(memberships.orgId, owner.orgId))
    .innerJoin(organizations, eq(organizations.id, memberships.orgId))
    .where(eq(memberships.userId, userId))
    .prepare("list_resource_owners");
});

/** @param resource the id of a tunnel, a captured request, a private network or a webhook receiver. */
export async function listResourceOwners(
  db: Database,
  user: string,
  resource: string,
): Promise<OrganizationWithRole[]> {
  const tunnelSuffix = getTunnelSuffixOfCapture(resource);
  const rows = await owners(db, { userId: user, resourceId: resource, tunnelSuffix });
  return rows.map(({ organization, role }) => ({ ...organization, role }));
}
