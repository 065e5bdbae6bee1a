/** Invitations' rows: at most one is open for each address, and each can be accepted once. */
import { findRole, requireRoomToOwn } from "./memberships.ts";
import { ago, fromNow } from "../clock.ts";
import { and, eq, gt, isNull, sql, type SQL } from "drizzle-orm";
import type { OrganizationActor } from "../audit.ts";
import { requireRoom } from "../bounds.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { inOrganization, preparedList, type Page } from "../page.ts";
import { isOfSameMailbox, lockMailbox } from "../accounts/mailboxes.ts";
import type { Role } from "../../../protocol/roles.ts";
import { lockOrganization, type MemberActor } from "../locks.ts";
import { users } from "../tables/accounts.ts";
import { invitations, memberships, organizations } from "../tables/organizations.ts";
import { findApprovalRefusal, type ApprovalRefusal } from "./approval.ts";
import type { OrganizationWithRole } from "./organization-with-role.ts";
import { DAY_MS } from "../../../shared/time.ts";
import { INVITATION_MAX_MS } from "../../limits.ts";

const INVITATIONS_OPEN_MAX = 100;
/** Per organization: each invitation is a mail to a person who did not ask for it. */
const INVITATIONS_DAILY_MAX = 200;
/** To one mailbox, by all organizations. */
const MAILBOX_INVITATIONS_DAILY_MAX = 20;

export type InvitationRow = typeof invitations.$inferSelect;

function isOpen(): SQL | undefined {
  return and(isNull(invitations.acceptedAt), isNull(invitations.revokedAt));
}

function isAcceptable(): SQL | undefined {
  return and(isOpen(), gt(invitations.expiresAt, sql`now()`));
}

/** With the token, in a query that joins the organization. */
function canBeAccepted(tokenHash: string): SQL | undefined {
  return and(eq(invitations.tokenHash, tokenHash), isAcceptable(), isNull(organizations.deletedAt));
}

const list = preparedList("list_invitations", inOrganization(invitations), (query, isOnPage) =>
  query.select().from(invitations).where(and(isOnPage, isAcceptable())),
);

/** The invitations that can still be accepted, newest first. */
export function listInvitations(db: Database, orgId: string, page: Page): Promise<InvitationRow[]> {
  return list(db, orgId, page);
}

interface NewInvitation {
  email: string;
  role: Role;
  tokenHash: string;
  /** The mail with the token. */
  mail: OutboxMessage;
}

export type InvitationRefusal =
  | ApprovalRefusal
  | "already_member"
  | "too_many"
  | "too_many_today"
  | "mailbox_has_too_many";

/** Replaces an open invitation for the same address, whose token becomes invalid. */
export function createInvitation(
  db: Database,
  actor: MemberActor,
  { email, role, tokenHash, mail }: NewInvitation,
): Promise<InvitationRow | InvitationRefusal> {
  return db.transaction(async (change) => {
    const { tx, audit, enqueue } = change;
    const { orgId } = actor;
    const org = await lockOrganization(tx, actor);
    const notApproved = findApprovalRefusal(org.approvalStatus);
    if (notApproved !== null) return notApproved;
    if (await isMember(tx, orgId, email)) return "already_member";

    const replaced = await tx
      .update(invitations)
      .set({ revokedAt: sql`now()` })
      .where(and(eq(invitations.orgId, orgId), eq(invitations.email, email), isOpen()))
      .returning({ id: invitations.id });
    const refusal = (await findQuotaRefusal(tx, orgId)) ?? (await findMailboxRefusal(tx, email));
    if (refusal !== null) return change.rollback(refusal);

    const [row] = await tx
      .insert(invitations)
      .values({
        orgId,
        email,
        role,
        tokenHash,
        invitedBy: actor.userId,
        expiresAt: fromNow(INVITATION_MAX_MS),
      })
      .returning();
    audit(actor, "invitation_created", row!.id, { email, role, replaces: replaced[0]?.id ?? null });
    enqueue(mail);
    return row!;
  });
}

async function isMember(tx: Transaction, orgId: string, email: string): Promise<boolean> {
  const rows = await tx
    .select({ userId: memberships.userId })
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(and(eq(memberships.orgId, orgId), eq(users.email, email)));
  return rows.length > 0;
}

async function findQuotaRefusal(
  tx: Transaction,
  orgId: string,
): Promise<"too_many" | "too_many_today" | null> {
  const [counted] = await tx
    .select({
      open: sql<number>`count(*) filter (where ${isAcceptable()})`.mapWith(Number),
      today: sql<number>`count(*) filter (where ${gt(invitations.createdAt, ago(DAY_MS))})`.mapWith(
        Number,
      ),
    })
    .from(invitations)
    // Older ones have expired.
    .where(and(eq(invitations.orgId, orgId), gt(invitations.createdAt, ago(INVITATION_MAX_MS))));
  if (counted!.open >= INVITATIONS_OPEN_MAX) return "too_many";
  return counted!.today >= INVITATIONS_DAILY_MAX ? "too_many_today" : null;
}

async function findMailboxRefusal(
  tx: Transaction,
  email: string,
): Promise<"mailbox_has_too_many" | null> {
  await lockMailbox(tx, email);
  const isRecent = and(
    isOfSameMailbox(invitations.email, email),
    gt(invitations.createdAt, ago(DAY_MS)),
  );
  const recent = await tx.$count(invitations, isRecent);
  return recent >= MAILBOX_INVITATIONS_DAILY_MAX ? "mailbox_has_too_many" : null;
}

/** Revokes the organization's open invitations for which the condition holds, or all of them. @returns how many. */
export async function revokeInvitations(
  { tx, audit }: UnitOfWork,
  actor: OrganizationActor,
  condition?: SQL,
): Promise<number> {
  const revoked = await tx
    .update(invitations)
    .set({ revokedAt: sql`now()` })
    .where(and(eq(invitations.orgId, actor.orgId), isAcceptable(), condition))
    .returning({ id: invitations.id });
  for (const { id } of revoked) {
    audit(actor, "invitation_revoked", id);
  }
  return revoked.length;
}

export function revokeInvitation(
  db: Database,
  actor: MemberActor,
  id: string,
): Promise<"revoked" | "not_found"> {
  return db.transaction(async (change) => {
    await lockOrganization(change.tx, actor);
    const revoked = await revokeInvitations(change, actor, eq(invitations.id, id));
    return revoked > 0 ? "revoked" : "not_found";
  });
}

interface InvitationOffer {
  organizationName: string;
  role: Role;
  /** null: the account of the inviter is deleted. */
  inviterEmail: string | null;
  expiresAt: Date;
}

/** The invitation that the token can still accept. @param email of the user who asks. */
export async function findInvitationOffer(
  { query }: Database,
  { tokenHash, email }: { tokenHash: string; email: string },
): Promise<InvitationOffer | "invalid" | "another_address"> {
  const [found] = await query
    .select({
      invitedEmail: invitations.email,
      organizationName: organizations.name,
      role: invitations.role,
      inviterEmail: users.email,
      expiresAt: invitations.expiresAt,
    })
    .from(invitations)
    .innerJoin(organizations, eq(organizations.id, invitations.orgId))
    .leftJoin(users, eq(users.id, invitations.invitedBy))
    .where(canBeAccepted(tokenHash));
  if (found === undefined) return "invalid";
  const { invitedEmail, ...offer } = found;
  return invitedEmail === email ? offer : "another_address";
}

/**
 * Makes the user whose address was invited a member. A user who is already a member keeps their role: an invitation does
 * not change roles.
 * @throws LimitReachedError when the organization has too many members, or the user owns too many organizations.
 */
export function acceptInvitation(
  db: Database,
  { tokenHash, ...actor }: { tokenHash: string; userId: string; email: string; ip: string },
): Promise<OrganizationWithRole | "invalid" | "another_address"> {
  return db.transaction(async ({ tx, audit }) => {
    const { userId, email, ip } = actor;
    const found = await lockInvitation(tx, tokenHash);
    if (!found) return "invalid";
    const { org, invitation } = found;
    if (invitation.email !== email) return "another_address";

    const accepted = await tx
      .update(invitations)
      .set({ acceptedAt: sql`now()` })
      .where(and(eq(invitations.id, invitation.id), isAcceptable()))
      .returning({ id: invitations.id });
    if (accepted.length === 0) return "invalid";
    const earlierRole = await findRole(tx, org.id, userId);
    if (earlierRole === null) {
      const condition = eq(memberships.orgId, org.id);
      await requireRoom(tx, org.id, "members", { table: memberships, condition });
      if (invitation.role === "owner") await requireRoomToOwn(tx, userId);
    }
    await tx
      .insert(memberships)
      .values({ userId, orgId: org.id, role: invitation.role })
      .onConflictDoNothing();
    const role = (await findRole(tx, org.id, userId))!;
    audit({ orgId: org.id, userId, ip }, "invitation_accepted", invitation.id, { role });
    return { ...org, role };
  });
}

/** Until the commit, the organization can't be deleted, and its members can't be changed. */
async function lockInvitation(tx: Transaction, tokenHash: string) {
  const [found] = await tx
    .select({ org: organizations, invitation: invitations })
    .from(invitations)
    .innerJoin(organizations, eq(organizations.id, invitations.orgId))
    .where(canBeAccepted(tokenHash))
    .for("no key update", { of: organizations });
  return found;
}
