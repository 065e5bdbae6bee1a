/** One user's membership of one organization. */
import { and, eq, type SQL } from "drizzle-orm";
import { LimitReachedError } from "../bounds.ts";
import type { UnitOfWork } from "../database.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import type { Role } from "../../../protocol/roles.ts";
import { users } from "../tables/accounts.ts";
import { memberships } from "../tables/organizations.ts";
import type { Reader, Transaction } from "../transaction.ts";

/** Organizations that one user owns. */
const ORGANIZATIONS_OWNED_MAX = 20;

export function isMembership(orgId: string, userId: string): SQL {
  return and(eq(memberships.orgId, orgId), eq(memberships.userId, userId))!;
}

/** @returns null when the user is not a member. */
export async function findRole(
  reader: Reader,
  orgId: string,
  userId: string,
): Promise<Role | null> {
  const [membership] = await reader
    .select({ role: memberships.role })
    .from(memberships)
    .where(isMembership(orgId, userId));
  return membership?.role ?? null;
}

/**
 * For a user who is about to own another organization. The user's row is locked, so that concurrent changes count each
 * other's organizations.
 * @throws LimitReachedError
 */
export async function requireRoomToOwn(tx: Transaction, userId: string): Promise<void> {
  await tx.select({ id: users.id }).from(users).where(eq(users.id, userId)).for("no key update");
  const isOwned = and(eq(memberships.userId, userId), eq(memberships.role, "owner"));
  if ((await tx.$count(memberships, isOwned)) < ORGANIZATIONS_OWNED_MAX) return;
  throw new LimitReachedError(`A user can own at most ${ORGANIZATIONS_OWNED_MAX} organizations.`);
}

/** Enqueues a mail to each owner of the organization. */
export async function mailOwners(
  { tx, enqueue }: UnitOfWork,
  orgId: string,
  toMessage: (to: string) => Promise<OutboxMessage>,
): Promise<void> {
  const owners = await tx
    .select({ email: users.email })
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(and(eq(memberships.orgId, orgId), eq(memberships.role, "owner")));
  for (const { email } of owners) enqueue(await toMessage(email));
}
