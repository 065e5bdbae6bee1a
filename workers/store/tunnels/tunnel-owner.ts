/**
 * The token, organization and project of an agent's tunnel: read before the rows are locked, and compared with them
 * afterwards.
 */
import { and, eq, isNull, sql, type SQL } from "drizzle-orm";
import { prepared, type Database } from "../database.ts";
import { isOverBudget, hasBudget } from "../tokens/spending.ts";
import { isUsable } from "../tokens/token-refusal.ts";
import { masters } from "../tokens/tokens.ts";
import { organizations, projects } from "../tables/organizations.ts";
import { tokens } from "../tables/tokens.ts";
import { hostnames, tunnels } from "../tables/tunnels.ts";
import type { RegistrationRequest } from "./registrations.ts";
import { isOtherServedBy } from "./undeleted-tunnels.ts";

const owners = prepared((query) =>
  query
    .select({
      orgId: tokens.orgId,
      tokenId: tokens.id,
      createdBy: tokens.createdBy,
      projectId: projects.id,
      plan: organizations.plan,
      hasBudget: sql<boolean>`${hasBudget}`,
      /** Whether no tunnel has ever had the requested name. */
      isNewName: sql<boolean>`${hostnames.host} is null`,
    })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .innerJoin(projects, eq(projects.orgId, tokens.orgId))
    .leftJoin(masters, eq(masters.id, tokens.mintedByMasterId))
    .leftJoin(hostnames, eq(hostnames.host, sql.placeholder("label")))
    .where(
      and(
        eq(tokens.orgId, sql.placeholder("orgId")),
        eq(tokens.nonce, sql.placeholder("tokenNonce")),
        isUsable,
        eq(projects.slug, sql.placeholder("projectSlug")),
        isNull(projects.deletedAt),
      ),
    )
    .prepare("owners"),
);

export type TunnelOwner = NonNullable<Awaited<ReturnType<typeof findOwner>>>;

/**
 * A token that is revoked, or whose budget is spent, after this was read: its agent is disconnected when its admission is
 * checked again.
 *
 * @returns undefined when the agent can't be admitted.
 */
export async function findOwner(
  db: Database,
  { orgId, tokenNonce, projectSlug, label }: RegistrationRequest,
) {
  const [owner] = await owners(db, { orgId, tokenNonce, projectSlug, label });
  if (owner?.hasBudget && (await isOverBudget(db.query, owner.tokenId))) return undefined;
  return owner;
}

/** Locks the project and then the token, in the order in which `registerTunnel` does. @param next is locked after them. */
export function buildOwnerLock({ tokenId, projectId }: TunnelOwner, next = sql`true`): SQL {
  return sql`with project as (
      select id from ${projects} where ${eq(projects.id, projectId)} for share),
    token as (
      select from ${tokens}, project where ${eq(tokens.id, tokenId)}
      for no key update of ${tokens})
    select ${next} from token`;
}

/** Whether the owner is as it was read, and the token's quota has room for the tunnel with this label. */
export function isAdmitted({ orgId, tokenId, projectId, plan }: TunnelOwner, label: string): SQL {
  const isCurrent = and(
    eq(tokens.id, tokenId),
    eq(organizations.id, orgId),
    eq(organizations.plan, plan),
    isUsable,
    eq(projects.id, projectId),
    isNull(projects.deletedAt),
  );
  return sql`exists (select from ${tokens}, ${organizations}, ${projects} where ${isCurrent}
    and (select count(*) from ${tunnels} where ${isOtherServedBy(tokenId, label)})
      < ${tokens.tunnelQuota})`;
}
