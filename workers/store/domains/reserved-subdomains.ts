/** Reserved subdomains' rows. The row in `hostnames` keeps other organizations from claiming the name. */
import { PLAN_LIMITS } from "../../../protocol/schemas/accounts/entitlements.ts";
import { and, eq, type SQL } from "drizzle-orm";
import type { OrganizationActor } from "../audit.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { endReservations, findTakenName, reserveHostname, type TakenName } from "./hostnames.ts";
import { inOrganization, preparedList, type Page } from "../page.ts";
import { lockOrganization, type MemberActor } from "../locks.ts";
import { reservedSubdomains } from "../tables/domains.ts";

export type ReservedSubdomainRow = typeof reservedSubdomains.$inferSelect;

const list = preparedList(
  "list_reserved_subdomains",
  inOrganization(reservedSubdomains),
  (query, isOnPage) => query.select().from(reservedSubdomains).where(isOnPage),
);

/** Newest first. */
export function listReservedSubdomains(
  db: Database,
  orgId: string,
  page: Page,
): Promise<ReservedSubdomainRow[]> {
  return list(db, orgId, page);
}

/** The organization is locked, so that concurrent requests count each other's reservations. */
export function reserveSubdomain(
  db: Database,
  actor: MemberActor,
  subdomain: string,
): Promise<ReservedSubdomainRow | TakenName | "quota_exceeded" | "reserved_already"> {
  return db.transaction(async (change) => {
    const { tx, audit, rollback } = change;
    const { orgId } = actor;
    const org = await lockOrganization(tx, actor);
    const isReserved = await reserveHostname(change, subdomain, orgId);
    if (!isReserved) return rollback(await findTakenName(change, subdomain, orgId));
    const [row] = await tx
      .insert(reservedSubdomains)
      .values({ orgId, subdomain })
      .onConflictDoNothing()
      .returning();
    if (!row) return "reserved_already";
    const reserved = await tx.$count(reservedSubdomains, eq(reservedSubdomains.orgId, orgId));
    const { max_reserved_subdomains: maxReservedSubdomains } = PLAN_LIMITS[org.plan];
    if (maxReservedSubdomains !== null && reserved > maxReservedSubdomains) {
      return rollback("quota_exceeded");
    }
    audit(actor, "subdomain_reserved", row.id, { subdomain });
    return row;
  });
}

export function releaseSubdomain(db: Database, actor: MemberActor, id: string): Promise<boolean> {
  return db.transaction(async (change) => {
    // A reservation locks the name before the row that says so, in the other order than a release.
    await lockOrganization(change.tx, actor);
    const released = await releaseSubdomains(change, actor, eq(reservedSubdomains.id, id));
    return released > 0;
  });
}

/** Releases the organization's reservations for which the condition holds, or all of them. @returns how many. */
export async function releaseSubdomains(
  change: UnitOfWork,
  actor: OrganizationActor,
  condition?: SQL,
): Promise<number> {
  const { orgId } = actor;
  const released = await change.tx
    .delete(reservedSubdomains)
    .where(and(eq(reservedSubdomains.orgId, orgId), condition))
    .returning({ id: reservedSubdomains.id, subdomain: reservedSubdomains.subdomain });
  if (released.length === 0) return 0;
  const hosts = released.map(({ subdomain }) => subdomain);
  await endReservations(change, hosts, orgId);
  for (const { id, subdomain } of released) {
    change.audit(actor, "subdomain_released", id, { subdomain });
  }
  return released.length;
}
