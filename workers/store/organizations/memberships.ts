/** One user's membership of one organization. */
import { and, eq, type SQL } from "drizzle-orm";
import type { Role } from "../locks.ts";
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
