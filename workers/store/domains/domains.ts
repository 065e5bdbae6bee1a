/** Custom domains' rows: claims, the verified owner, and the tunnel that a domain leads to. */
import { isRowOfOrganization } from "../owned-rows.ts";
import { and, eq, inArray, isNotNull, isNull, lt, ne, sql, type SQL } from "drizzle-orm";
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { EXPIRY_BATCH_ROWS, PROOF_CHECK_INTERVAL_MS } from "../../limits.ts";
import { serviceActor, type Actor, type OrganizationActor } from "../audit.ts";
import { requireRoom } from "../bounds.ts";
import { ago, fromNow } from "../clock.ts";
import { isAmong } from "../chunks.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { DomainNotices, LossReason } from "./domain-notices.ts";
import { mailOwners } from "../organizations/memberships.ts";
import { claimHostname, releaseHostname } from "./hostnames.ts";
import { inOrganization, preparedList, type Page } from "../page.ts";
import { lockOrganization, type MemberActor } from "../locks.ts";
import { domains } from "../tables/domains.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUndeletedTunnel } from "../tunnels/undeleted-tunnels.ts";
import { DAY_MS } from "../../../shared/time.ts";

/** Unverified claims of one organization. */
const DOMAINS_UNVERIFIED_MAX = 100;
/** An unverified claim is deleted after this. */
const DOMAIN_CLAIM_MAX_MS = 7 * DAY_MS;

export type DomainRow = typeof domains.$inferSelect;

const list = preparedList("list_domains", inOrganization(domains), (query, isOnPage) =>
  query.select().from(domains).where(isOnPage),
);

/** Newest first. */
export function listDomains(db: Database, orgId: string, page: Page): Promise<DomainRow[]> {
  return list(db, orgId, page);
}

export async function findDomain(
  { query }: Database,
  orgId: string,
  id: string,
): Promise<DomainRow | null> {
  const [row] = await query
    .select()
    .from(domains)
    .where(isRowOfOrganization(domains, orgId, id));
  return row ?? null;
}

/** Whether any organization has verified the domain. */
export async function isVerifiedDomain({ query }: Database, domain: string): Promise<boolean> {
  const rows = await query
    .select({ id: domains.id })
    .from(domains)
    .where(and(eq(domains.domain, domain), isNotNull(domains.verifiedAt)));
  return rows.length > 0;
}

/**
 * Several organizations can claim the same domain, because otherwise anyone could block it. `verifyDomain` gives it to the
 * organization that proves its ownership last: a domain can change hands, and only its owner can publish the record.
 */
export function claimDomain(
  db: Database,
  actor: MemberActor,
  { domain, verificationToken }: { domain: string; verificationToken: string },
): Promise<DomainRow | "claimed_already" | "too_many"> {
  return db.transaction(async ({ tx, audit, rollback }) => {
    const { orgId } = actor;
    await lockOrganization(tx, actor);
    const [row] = await tx
      .insert(domains)
      .values({ orgId, domain, verificationToken })
      .onConflictDoNothing()
      .returning();
    if (!row) return "claimed_already";
    const isUnverified = and(eq(domains.orgId, orgId), isNull(domains.verifiedAt));
    if ((await tx.$count(domains, isUnverified)) > DOMAINS_UNVERIFIED_MAX) {
      return rollback("too_many");
    }
    audit(actor, "domain_claimed", row.id, { domain });
    return row;
  });
}

/**
 * Called after the organization has proved its ownership. All claims of the domain are locked, and the other ones are
 * deleted, a verified one included. So of two concurrent verifications, the second finds its claim deleted.
 */
export function verifyDomain(
  db: Database,
  actor: MemberActor,
  { id, domain }: Pick<DomainRow, "id" | "domain">,
  notices: DomainNotices,
): Promise<DomainRow | "not_found"> {
  return db.changeAs(actor, async (change) => {
    const { tx, audit, enqueue } = change;
    const claims = await tx
      .select()
      .from(domains)
      .where(eq(domains.domain, domain))
      .orderBy(domains.id)
      .for("update");
    const own = claims.find((claim) => claim.id === id && claim.orgId === actor.orgId);
    if (!own) return "not_found";
    if (own.verifiedAt && own.proofMissingSince === null) return own;

    if (!own.verifiedAt) {
      const condition = and(eq(domains.orgId, actor.orgId), isNotNull(domains.verifiedAt));
      await requireRoom(tx, actor.orgId, "verified_domains", { table: domains, condition });
    }
    const previous = claims.find(({ verifiedAt, id: claimId }) => verifiedAt && claimId !== id);
    if (previous) await loseDomain(change, previous, "proven_by_another", notices);
    const [row] = await tx
      .update(domains)
      .set({
        verifiedAt: own.verifiedAt ?? sql`now()`,
        proofMissingSince: null,
        nextProofCheckAt: fromNow(PROOF_CHECK_INTERVAL_MS),
      })
      .where(eq(domains.id, id))
      .returning();
    audit(actor, own.verifiedAt ? "domain_proof_found" : "domain_verified", id, { domain });
    enqueue({ kind: "custom_hostname", payload: { domain } });
    await release(change, null, and(eq(domains.domain, domain), ne(domains.id, id)));
    return row!;
  });
}

/** Binds the domain to a tunnel, instead of the one that it is bound to. Binding it to the same tunnel changes nothing. */
export function bindDomain(
  db: Database,
  actor: MemberActor,
  { id, tunnelId }: { id: string; tunnelId: string },
): Promise<
  | DomainRow
  | "not_found"
  | "tunnel_not_found"
  | "tunnel_expired"
  | "not_http"
  | "not_verified"
  | "duplicate_name"
> {
  return db.changeAs(actor, async (change) => {
    const { tx } = change;
    const { orgId } = actor;
    // The end of a tunnel locks the tunnel before its domains too; another order could cause a deadlock.
    const [tunnel] = await tx
      .select({ protocol: tunnels.protocol, status: tunnels.status })
      .from(tunnels)
      .where(isUndeletedTunnel(orgId, tunnelId))
      .for("share");
    const [row] = await tx
      .select()
      .from(domains)
      .where(isRowOfOrganization(domains, orgId, id))
      .for("update");
    if (!row) return "not_found";
    if (!row.verifiedAt) return "not_verified";
    if (!tunnel) return "tunnel_not_found";
    if (tunnel.status === "expired") return "tunnel_expired";
    if (!isHttpProtocol(tunnel.protocol)) return "not_http";
    if (row.boundTunnelId === tunnelId) return row;
    return bindLockedDomain(change, actor, row, tunnelId);
  });
}

/** The caller has locked the tunnel and then the domain, which is verified. */
export async function bindLockedDomain(
  change: UnitOfWork,
  actor: OrganizationActor,
  { id, domain, boundTunnelId: from }: DomainRow,
  tunnelId: string,
): Promise<DomainRow | "duplicate_name"> {
  const { orgId } = actor;
  const isClaimed = await claimHostname(change, { host: domain, tunnelId, orgId, from });
  if (!isClaimed) return "duplicate_name";
  const [bound] = await change.tx
    .update(domains)
    .set({ boundTunnelId: tunnelId })
    .where(eq(domains.id, id))
    .returning();
  change.audit(actor, "domain_bound", id, { domain, tunnelId });
  change.enqueue({ kind: "custom_hostname", payload: { domain } });
  return bound!;
}

/** An unbound domain is not changed. */
export function unbindDomain(
  db: Database,
  actor: OrganizationActor,
  id: string,
): Promise<"unbound" | "not_found"> {
  return db.transaction(async (change) => {
    const { tx } = change;
    const [row] = await tx
      .select()
      .from(domains)
      .where(isRowOfOrganization(domains, actor.orgId, id))
      .for("update");
    if (!row) return "not_found";
    if (row.boundTunnelId === null) return "unbound";
    await unbind(change, actor, eq(domains.id, id));
    await releaseHostname(change, row.domain, row.boundTunnelId);
    return "unbound";
  });
}

/** For tunnels that end. The caller releases their host names. */
export async function unbindTunnels(
  change: UnitOfWork,
  actor: Actor,
  tunnelIds: string[],
): Promise<void> {
  if (tunnelIds.length > 0) {
    await unbind(change, actor, isAmong(domains.boundTunnelId, tunnelIds));
  }
}

async function unbind({ tx, audit }: UnitOfWork, actor: Actor, which: SQL): Promise<void> {
  const unbound = await tx
    .update(domains)
    .set({ boundTunnelId: null })
    .where(which)
    .returning({ id: domains.id, orgId: domains.orgId, domain: domains.domain });
  for (const { id, orgId, domain } of unbound) {
    audit({ ...actor, orgId }, "domain_unbound", id, { domain });
  }
}

export function releaseDomain(
  db: Database,
  actor: OrganizationActor,
  id: string,
): Promise<boolean> {
  return db.transaction(async (change) => {
    const released = await release(change, actor, isRowOfOrganization(domains, actor.orgId, id));
    return released > 0;
  });
}

/** Releases all domains of an organization. */
export async function releaseDomains(change: UnitOfWork, actor: OrganizationActor): Promise<void> {
  await release(change, actor, eq(domains.orgId, actor.orgId));
}

/** Deletes a batch of claims that were not verified in time. @returns how many; after a full batch there may be more. */
export function expireClaims(db: Database): Promise<number> {
  return db.transaction(async (change) => {
    const isOld = lt(domains.createdAt, ago(DOMAIN_CLAIM_MAX_MS));
    const due = await change.tx
      .select({ id: domains.id })
      .from(domains)
      .where(and(isNull(domains.verifiedAt), isOld))
      .limit(EXPIRY_BATCH_ROWS)
      .for("update", { skipLocked: true });
    const ids = due.map(({ id }) => id);
    return ids.length === 0 ? 0 : release(change, null, inArray(domains.id, ids));
  });
}

/** Releases a verified domain that its organization can no longer prove, and notifies the owners. */
export async function loseDomain(
  change: UnitOfWork,
  { id, orgId, domain }: DomainRow,
  reason: LossReason,
  notices: DomainNotices,
): Promise<void> {
  await release(change, serviceActor(orgId), eq(domains.id, id), { reason });
  await mailOwners(change, orgId, (to) => notices.released(to, domain, reason));
}

/** @param by null for the service itself. @returns how many. */
async function release(
  change: UnitOfWork,
  by: Actor | null,
  which: SQL | undefined,
  metadata: { reason?: LossReason } = {},
): Promise<number> {
  const { tx, audit, enqueue } = change;
  const released = await tx.delete(domains).where(which).returning();
  for (const { id, orgId, domain, verifiedAt, boundTunnelId } of released) {
    if (boundTunnelId !== null) await releaseHostname(change, domain, boundTunnelId);
    if (verifiedAt) enqueue({ kind: "custom_hostname", payload: { domain } });
    audit({ orgId, userId: by?.userId ?? null, ip: by?.ip ?? null }, "domain_released", id, {
      domain,
      ...metadata,
    });
  }
  return released.length;
}
