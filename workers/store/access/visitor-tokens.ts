/** The record of tokens that were minted for a tunnel's visitors. They have no rows: they can't be revoked. */
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { isUndeletedTunnel } from "../tunnels/undeleted-tunnels.ts";
import type { Database } from "../database.ts";
import type { MemberActor } from "../locks.ts";
import { tunnels } from "../tables/tunnels.ts";

/** @returns the subdomain of the tunnel that the token is for, or why there can be no token for it. */
export function recordVisitorToken(
  db: Database,
  actor: MemberActor,
  tunnelId: string,
  token: { subject: string; expiresAt: Date },
): Promise<{ subdomain: string } | "not_found" | "not_http" | "expired"> {
  return db.changeAs(actor, async ({ tx, audit }) => {
    const [tunnel] = await tx
      .select({
        subdomain: tunnels.subdomain,
        protocol: tunnels.protocol,
        status: tunnels.status,
      })
      .from(tunnels)
      .where(isUndeletedTunnel(actor.orgId, tunnelId));
    if (!tunnel) return "not_found";
    if (!isHttpProtocol(tunnel.protocol)) return "not_http";
    if (tunnel.status === "expired") return "expired";
    const { subject, expiresAt } = token;
    audit(actor, "visitor_token_minted", tunnelId, { subject, expiresAt: expiresAt.toISOString() });
    return { subdomain: tunnel.subdomain };
  });
}
