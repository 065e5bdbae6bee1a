/** One user's membership of one organization. */
import { and, eq, type SQL } from "drizzle-orm";
import type { Role } from "../locks.ts";
import { users } from "../tables/accounts.ts";
import { memberships } from "../tables/organizations.ts";
import type { Reader } from "../transaction.ts";

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

/** @returns the addresses of the organization's owners. */
export async function listOwners(reader: Reader, orgId: string): Promise<string[]> {
  const owners = await reader
    .select({ email: users.email })
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(and(eq(memberships.orgId, orgId), eq(memberships.role, "owner")));
  return owners.map(({ email }) => email);
}
