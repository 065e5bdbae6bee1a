/**
 * What a route's guard found of its caller can be over by the time of the change. Whoever hands out
 * something that lasts looks again, under a lock, so that what a removal does not find is never made.
 */
import { and, eq, isNull } from "drizzle-orm";
import type { Standing } from "./billing/plans.ts";
import type { Actor } from "./audit.ts";
import type { Transaction } from "./transaction.ts";
import { tokens } from "./tables/tokens.ts";
import { memberships, organizations } from "./tables/organizations.ts";

export type Role = (typeof memberships.$inferSelect)["role"];

/** A member, with the role that the guard found. */
export interface MemberActor extends Actor {
  orgId: string;
  userId: string;
  role: Role;
}

/** An agent that calls with its own token; `userId` is whose token it is. */
export interface AgentActor extends Actor {
  orgId: string;
  tokenId: string;
}

export type CallerActor = MemberActor | AgentActor;

/** Whether the actor's token or role is still what the guard found; until the commit it stays so. */
export function isStillAllowed(tx: Transaction, actor: CallerActor): Promise<boolean> {
  return "tokenId" in actor ? isTokenLive(tx, actor) : holdsRole(tx, actor);
}

async function isTokenLive(tx: Transaction, { orgId, tokenId }: AgentActor): Promise<boolean> {
  const rows = await tx
    .select({ id: tokens.id })
    .from(tokens)
    .where(and(eq(tokens.orgId, orgId), eq(tokens.id, tokenId), isNull(tokens.revokedAt)))
    .for("share");
  return rows.length > 0;
}

/** Whether the actor still has that role; until the commit it stays so. */
export async function holdsRole(
  tx: Transaction,
  { orgId, userId, role }: MemberActor,
): Promise<boolean> {
  const rows = await tx
    .select({ role: memberships.role })
    .from(memberships)
    .where(
      and(eq(memberships.userId, userId), eq(memberships.orgId, orgId), eq(memberships.role, role)),
    )
    .for("share");
  return rows.length > 0;
}

/**
 * The organization's plan, for an actor who still has that role; until the commit both stay so. Comes before
 * the locks of what hangs on the plan: whoever changes it locks the organization first as well.
 *
 * @returns null when the organization is gone or the actor's role was changed.
 */
export async function holdStanding(tx: Transaction, actor: MemberActor): Promise<Standing | null> {
  const { plan, trialEndsAt } = organizations;
  const [standing] = await tx
    .select({ plan, trialEndsAt })
    .from(organizations)
    .where(eq(organizations.id, actor.orgId))
    .for("share");
  return standing && (await holdsRole(tx, actor)) ? standing : null;
}

/**
 * Changes of an organization, of its members and its invitations take turns. The lock leaves rows that
 * refer to the organization alone, so that its tunnels and sessions go on meanwhile.
 *
 * @returns null when the organization is gone or the actor's role was changed, or its token revoked.
 */
export async function lockOrganization(
  tx: Transaction,
  actor: CallerActor,
): Promise<typeof organizations.$inferSelect | null> {
  const [org] = await tx
    .select()
    .from(organizations)
    .where(and(eq(organizations.id, actor.orgId), isNull(organizations.deletedAt)))
    .for("no key update");
  return org && (await isStillAllowed(tx, actor)) ? org : null;
}
