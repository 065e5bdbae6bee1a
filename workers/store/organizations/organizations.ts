/** Organizations' rows. */
import { and, eq, gt, isNull, ne, sql } from "drizzle-orm";
import { DEFAULT_PROJECT_SLUG } from "../../../protocol/names.ts";
import type { Plan } from "../../../protocol/plans.ts";
import { DAY_MS, HOUR_MS } from "../../../shared/time.ts";
import type { UserActor } from "../audit.ts";
import { LimitReachedError } from "../bounds.ts";
import { ago } from "../clock.ts";
import type { Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { releaseDomains } from "../domains/domains.ts";
import { revokeInvitations } from "./invitations.ts";
import { requireRoomToOwn } from "./memberships.ts";
import { deleteNetworks } from "../networks/networks.ts";
import { releasePorts } from "../networks/relay-ports.ts";
import { preparedList, type Page } from "../page.ts";
import { deleteReceivers } from "../webhooks/receivers.ts";
import { releaseSubdomains } from "../domains/reserved-subdomains.ts";
import { lockOrganization, type MemberActor } from "../locks.ts";
import { endSubscriptions } from "../billing/subscriptions.ts";
import { auditEvents } from "../tables/audit.ts";
import { sessions } from "../tables/sessions.ts";
import {
  memberships,
  organizations,
  projects,
  type OrganizationRow,
} from "../tables/organizations.ts";
import { revokeTokens } from "../tokens/tokens.ts";
import { deleteTraffic } from "../metrics/traffic.ts";
import { deleteTunnels } from "../tunnels/lifecycle.ts";
import type { OrganizationWithRole } from "./organization-with-role.ts";

/** A deleted organization leaves a row, and its owner can create another one. */
const DELETIONS_DAILY_MAX = 20;

/** The plan, the approval and the trial that a new organization starts with. */
export interface OrganizationTerms {
  plan: Plan;
  approvalStatus: "approved" | "pending";
  trialEndsAt: Date | null;
}

const list = preparedList(
  "list_organizations",
  { scope: memberships.userId, timestamp: memberships.createdAt, id: memberships.orgId },
  (query, isOnPage) =>
    query
      .select({ organization: organizations, role: memberships.role })
      .from(memberships)
      .innerJoin(organizations, eq(organizations.id, memberships.orgId))
      .where(isOnPage),
);

/** The organizations that a user belongs to, the one joined last first. */
export async function listOrganizations(
  db: Database,
  userId: string,
  page: Page,
): Promise<OrganizationWithRole[]> {
  const rows = await list(db, userId, page);
  return rows.map(({ organization, role }) => ({ ...organization, role }));
}

/** For callers who have checked the membership. @returns null when it has been deleted. */
export async function findOrganization(
  { query }: Database,
  orgId: string,
): Promise<OrganizationRow | null> {
  const [org] = await query
    .select()
    .from(organizations)
    .where(and(eq(organizations.id, orgId), isNull(organizations.deletedAt)));
  return org ?? null;
}

/** Creates the organization of a new account, named after its address, with a default project. @returns its id. */
export async function insertInitialOrganization(
  tx: Transaction,
  { userId, email, terms }: { userId: string; email: string; terms: OrganizationTerms },
): Promise<string> {
  const name = email.slice(0, email.indexOf("@"));
  const org = await insertWithOwner(tx, { userId, name, terms });
  if (!org) throw new Error("a slug with a random suffix is taken");
  return org.id;
}

interface NewOrganization {
  name: string;
  /** undefined: derived from the name. */
  slug?: string | undefined;
  terms: OrganizationTerms;
}

/** @throws LimitReachedError when the user owns too many. */
export function createOrganization(
  db: Database,
  actor: UserActor,
  organization: NewOrganization,
): Promise<OrganizationWithRole | "duplicate_name"> {
  return db.transaction(async ({ tx, audit }) => {
    const { userId } = actor;
    await requireRoomToOwn(tx, userId);
    const org = await insertWithOwner(tx, { userId, ...organization });
    if (!org) return "duplicate_name";
    audit({ ...actor, orgId: org.id }, "organization_created", org.id, {
      name: org.name,
      slug: org.slug,
    });
    return { ...org, role: "owner" };
  });
}

/** @returns null when the slug is taken. */
async function insertWithOwner(
  tx: Transaction,
  { userId, name, slug, terms }: NewOrganization & { userId: string },
): Promise<OrganizationRow | null> {
  const [org] = await tx
    .insert(organizations)
    .values({ name, slug: slug ?? toSlug(name), ...terms })
    .onConflictDoNothing()
    .returning();
  if (!org) return null;
  await tx.insert(memberships).values({ userId, orgId: org.id, role: "owner" });
  await tx
    .insert(projects)
    .values({ orgId: org.id, slug: DEFAULT_PROJECT_SLUG, name: "Default", isDefault: true });
  return org;
}

function toSlug(name: string): string {
  const suffix = crypto.randomUUID().slice(0, 8);
  const stem = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 40)
    .replace(/^-|-$/g, "");
  return stem === "" ? suffix : `${stem}-${suffix}`;
}

/** Setting the current name changes nothing and writes no event. */
export function renameOrganization(
  db: Database,
  actor: MemberActor,
  name: string,
): Promise<OrganizationWithRole> {
  return db.transaction(async ({ tx, audit }) => {
    const org = await lockOrganization(tx, actor);
    if (org.name === name) return { ...org, role: actor.role };
    await tx.update(organizations).set({ name }).where(eq(organizations.id, org.id));
    audit(actor, "organization_updated", org.id, { from: org.name, to: name });
    return { ...org, name, role: actor.role };
  });
}

/**
 * The row is kept for the audit log; all that acts for the organization ends. Members are removed first: a concurrent
 * request for a token or a name either has committed, so that its row is found below, or is no longer a member's.
 * @throws LimitReachedError when the actor has deleted too many in 24 hours.
 */
export function deleteOrganization(db: Database, actor: MemberActor): Promise<void> {
  return db.transaction(async (change) => {
    const { tx, audit, enqueue } = change;
    const { orgId } = actor;
    await lockOrganization(tx, actor);
    await requireFewDeletions(tx, actor.userId);
    await tx.delete(memberships).where(eq(memberships.orgId, orgId));
    enqueue({ kind: "watching_ended", payload: { orgId, whose: "everybody" } });
    await revokeTokens(change, actor);
    await deleteTunnels(change, actor);
    await deleteTraffic(tx, orgId);
    await releaseDomains(change, actor);
    await releaseSubdomains(change, actor);
    await deleteReceivers(change, actor);
    await deleteNetworks(change, actor);
    await releasePorts(change, orgId);
    await revokeInvitations(change, actor);
    await endSubscriptions(change, orgId);
    await tx
      .update(organizations)
      .set({ deletedAt: sql`now()` })
      .where(eq(organizations.id, orgId));
    audit(actor, "organization_deleted", orgId);
  });
}

async function requireFewDeletions(tx: Transaction, userId: string): Promise<void> {
  const { action, createdAt } = auditEvents;
  const isDeletion = and(eq(auditEvents.userId, userId), eq(action, "organization_deleted"));
  const deletions = await tx.$count(auditEvents, and(isDeletion, gt(createdAt, ago(DAY_MS))));
  if (deletions < DELETIONS_DAILY_MAX) return;
  throw new LimitReachedError(
    `A user can delete at most ${DELETIONS_DAILY_MAX} organizations in 24 hours.`,
    HOUR_MS,
  );
}

/** Makes the session act for this organization when it is renewed. */
export function switchOrganization(
  db: Database,
  actor: MemberActor,
  sessionId: string,
): Promise<void> {
  return db.changeAs(actor, async ({ tx, audit }) => {
    const switched = await tx
      .update(sessions)
      .set({ orgId: actor.orgId, lastSeenAt: sql`now()` })
      .where(and(eq(sessions.id, sessionId), ne(sessions.orgId, actor.orgId)))
      .returning({ id: sessions.id });
    if (switched.length > 0) {
      audit(actor, "organization_switched", actor.orgId);
    }
  });
}
