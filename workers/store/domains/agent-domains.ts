/** Custom domains that agents ask for. A domain that leads to a tunnel determines which tunnel its agent serves. */
import { and, eq, isNotNull } from "drizzle-orm";
import type { OrganizationActor } from "../audit.ts";
import type { Database, UnitOfWork } from "../database.ts";
import { domains } from "../tables/domains.ts";
import { projects } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUnended } from "../tunnels/undeleted-tunnels.ts";
import { bindLockedDomain } from "./domains.ts";

export type DomainRefusal =
  /** The organization has not claimed it. Another one may have. */
  | "domain_not_found"
  | "domain_not_verified"
  /** It leads to another tunnel. */
  | "domain_in_use"
  /** It leads to no tunnel, and the agent's token may not bind it. */
  | "domain_not_bound";

/** The tunnel that a domain leads to. */
interface DomainTunnel {
  name: string;
  projectSlug: string;
}

/** @returns null when the verified domain leads to no tunnel. */
export async function findDomainTunnel(
  { query }: Database,
  orgId: string,
  domain: string,
): Promise<DomainTunnel | null | DomainRefusal> {
  const [row] = await query
    .select({
      verifiedAt: domains.verifiedAt,
      tunnel: { name: tunnels.name, projectSlug: projects.slug },
    })
    .from(domains)
    .leftJoin(tunnels, and(eq(tunnels.id, domains.boundTunnelId), isUnended))
    .leftJoin(projects, eq(projects.id, tunnels.projectId))
    .where(and(eq(domains.orgId, orgId), eq(domains.domain, domain)));
  if (!row) return "domain_not_found";
  if (!row.verifiedAt) return "domain_not_verified";
  const { name, projectSlug } = row.tunnel ?? {};
  return name && projectSlug ? { name, projectSlug } : null;
}

/** Whether the domain leads to the tunnel. */
export async function isBoundTo(
  { query }: Database,
  orgId: string,
  domain: string,
  tunnelId: string,
): Promise<boolean> {
  const rows = await query
    .select({ id: domains.id })
    .from(domains)
    .where(
      and(
        eq(domains.orgId, orgId),
        eq(domains.domain, domain),
        eq(domains.boundTunnelId, tunnelId),
        isNotNull(domains.verifiedAt),
      ),
    );
  return rows.length > 0;
}

export interface DomainRequest {
  domain: string;
  /** false: only a domain that leads to the tunnel already is accepted. */
  canBind: boolean;
}

/** Makes the domain lead to the tunnel of an agent that registers. The caller has locked the tunnel. */
export async function bindDomainOfAgent(
  change: UnitOfWork,
  actor: OrganizationActor,
  { domain, canBind }: DomainRequest,
  tunnelId: string,
): Promise<"bound" | DomainRefusal> {
  const [row] = await change.tx
    .select()
    .from(domains)
    .where(and(eq(domains.orgId, actor.orgId), eq(domains.domain, domain)))
    .for("update");
  if (!row) return "domain_not_found";
  if (!row.verifiedAt) return "domain_not_verified";
  if (row.boundTunnelId === tunnelId) return "bound";
  if (row.boundTunnelId !== null) return "domain_in_use";
  if (!canBind) return "domain_not_bound";
  const bound = await bindLockedDomain(change, actor, row, tunnelId);
  return bound === "duplicate_name" ? "domain_in_use" : "bound";
}
