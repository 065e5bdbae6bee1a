/** An organization's members and their roles. Every organization always has an owner. */
import { isMembership, requireRoomToOwn } from "./memberships.ts";
import { and, eq, inArray, ne } from "drizzle-orm";
import type { UnitOfWork, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { revokeInvitations } from "./invitations.ts";
import { revokeTicketsOfUser } from "../networks/ticket-revocations.ts";
import { preparedList, type Page } from "../page.ts";
import type { Role } from "../../../protocol/roles.ts";
import { lockOrganization, type MemberActor } from "../locks.ts";
import { users } from "../tables/accounts.ts";
import { tokens } from "../tables/tokens.ts";
import { invitations, memberships } from "../tables/organizations.ts";
import { revokeTokens } from "../tokens/tokens.ts";

const COLUMNS = {
  userId: memberships.userId,
  email: users.email,
  role: memberships.role,
  joinedAt: memberships.createdAt,
};

export interface MemberRow {
  userId: string;
  email: string;
  role: Role;
  joinedAt: Date;
}

const list = preparedList(
  "list_members",
  { scope: memberships.orgId, timestamp: memberships.createdAt, id: memberships.userId },
  (query, isOnPage) =>
    query
      .select(COLUMNS)
      .from(memberships)
      .innerJoin(users, eq(users.id, memberships.userId))
      .where(isOnPage),
);

/** The newest member first. */
export function listMembers(db: Database, orgId: string, page: Page): Promise<MemberRow[]> {
  return list(db, orgId, page);
}

/** Revoked when the role of a member changes: what they have obtained with the permissions that they lose. */
export interface RoleRevocations {
  /** Capability tokens that they minted. */
  tokens: boolean;
  /** Relay tickets that were issued to their sessions. */
  tickets: boolean;
  /** Invitations with one of these roles are revoked. */
  invitationsTo: Role[];
}

export type MemberRefusal = "not_found" | "owners_only" | "last_owner";

/** Setting the current role changes nothing and writes no event. @throws LimitReachedError for an owner of too many. */
export function changeRole(
  db: Database,
  actor: MemberActor,
  {
    userId,
    role,
    canChangeOwners,
    revocations,
  }: { userId: string; role: Role; canChangeOwners: boolean; revocations: RoleRevocations },
): Promise<MemberRow | MemberRefusal> {
  return db.transaction(async (change) => {
    const { tx, audit } = change;
    const member = await findMember(tx, actor, userId);
    if (typeof member === "string") return member;
    if ([member.role, role].includes("owner") && !canChangeOwners) return "owners_only";
    if (member.role === role) return member;
    if (await isLastOwner(tx, actor.orgId, member)) return "last_owner";

    if (role === "owner") await requireRoomToOwn(tx, userId);
    await tx.update(memberships).set({ role }).where(isMembership(actor.orgId, userId));
    audit(actor, "member_role_changed", userId, {
      email: member.email,
      from: member.role,
      to: role,
    });
    await applyRevocations(change, actor, userId, revocations);
    return { ...member, role };
  });
}

/** The member's sessions can't act for the organization from the next request on. */
export function removeMember(
  db: Database,
  actor: MemberActor,
  {
    userId,
    canChangeOwners,
    revocations,
  }: { userId: string; canChangeOwners: boolean; revocations: RoleRevocations },
): Promise<"removed" | MemberRefusal> {
  return db.transaction(async (change) => {
    const { tx, audit } = change;
    const member = await findMember(tx, actor, userId);
    if (typeof member === "string") return member;
    if (member.role === "owner" && !canChangeOwners) return "owners_only";
    if (await isLastOwner(tx, actor.orgId, member)) return "last_owner";

    // Before the member's tokens: one that is being minted at the same time is either revoked below or not minted.
    await tx.delete(memberships).where(isMembership(actor.orgId, userId));
    audit(actor, "member_removed", userId, { email: member.email, role: member.role });
    change.enqueue({ kind: "watching_ended", payload: { orgId: actor.orgId, whose: { userId } } });
    await applyRevocations(change, actor, userId, revocations);
    return "removed";
  });
}

/** Locks the organization: of two owners who demote each other, the second is the last owner. */
async function findMember(
  tx: Transaction,
  actor: MemberActor,
  userId: string,
): Promise<MemberRow | "not_found"> {
  await lockOrganization(tx, actor);
  const [member] = await tx
    .select(COLUMNS)
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(isMembership(actor.orgId, userId));
  return member ?? "not_found";
}

async function isLastOwner(tx: Transaction, orgId: string, member: MemberRow): Promise<boolean> {
  if (member.role !== "owner") return false;
  const others = await tx
    .select({ userId: memberships.userId })
    .from(memberships)
    .where(
      and(
        eq(memberships.orgId, orgId),
        eq(memberships.role, "owner"),
        ne(memberships.userId, member.userId),
      ),
    )
    .limit(1);
  return others.length === 0;
}

async function applyRevocations(
  change: UnitOfWork,
  actor: MemberActor,
  userId: string,
  revocations: RoleRevocations,
): Promise<void> {
  if (revocations.tokens) await revokeTokens(change, actor, eq(tokens.createdBy, userId));
  if (revocations.tickets) await revokeTicketsOfUser(change, actor.orgId, userId);
  if (revocations.invitationsTo.length > 0) {
    const isRevoked = and(
      eq(invitations.invitedBy, userId),
      inArray(invitations.role, revocations.invitationsTo),
    );
    await revokeInvitations(change, actor, isRevoked);
  }
}
