/**
 * The guard of a route reads the caller's role before the change begins. A change that creates something lasting reads
 * it again, under a lock: a role or token that was removed meanwhile creates nothing, and none can be removed until the
 * commit.
 */
import { and, eq, isNull } from "drizzle-orm";
import type { Role } from "../../protocol/roles.ts";
import type { PlanState } from "./billing/plans.ts";
import type { Actor } from "./audit.ts";
import type { Transaction } from "./transaction.ts";
import { tokens } from "./tables/tokens.ts";
import { memberships, organizations, type OrganizationRow } from "./tables/organizations.ts";

/** A member, with the role that the guard read. */
export interface MemberActor extends Actor {
  orgId: string;
  userId: string;
  role: Role;
  /** undefined: the setup of a server, which has no session. */
  sessionId?: string;
}

/** An agent that calls with its own token; `userId` is the token's owner. */
interface AgentActor extends Actor {
  orgId: string;
  tokenId: string;
  agentNonce: string;
}

export type CallerActor = MemberActor | AgentActor;

/** The caller's role has changed, its token was revoked, or its organization deleted, since the guard read it. */
export class PermissionLostError extends Error {
  override name = "PermissionLostError";
  /** Whether a member's role or an agent's token has changed. */
  readonly credential: "role" | "token";

  constructor(actor: CallerActor) {
    super("the caller's role or token has changed since the request began");
    this.credential = "tokenId" in actor ? "token" : "role";
  }
}

/**
 * Locks the actor's role or token until the commit, if it is still as the guard read it.
 * @throws PermissionLostError
 */
export async function lockCaller(tx: Transaction, actor: CallerActor): Promise<void> {
  if (!(await ("tokenId" in actor ? lockToken(tx, actor) : lockRole(tx, actor)))) {
    throw new PermissionLostError(actor);
  }
}

async function lockToken(tx: Transaction, { orgId, tokenId }: AgentActor): Promise<boolean> {
  const rows = await tx
    .select({ id: tokens.id })
    .from(tokens)
    .where(and(eq(tokens.orgId, orgId), eq(tokens.id, tokenId), isNull(tokens.revokedAt)))
    .for("share");
  return rows.length > 0;
}

async function lockRole(tx: Transaction, { orgId, userId, role }: MemberActor): Promise<boolean> {
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
 * Locks the organization's plan and the actor's role until the commit, and returns the plan. Call it before locking rows
 * that depend on the plan: a change of the plan locks the organization first as well.
 * @throws PermissionLostError
 */
export async function lockPlanAndRole(tx: Transaction, actor: MemberActor): Promise<PlanState> {
  const state = await lockPlan(tx, actor.orgId);
  if (!state) throw new PermissionLostError(actor);
  await lockCaller(tx, actor);
  return state;
}

/** Locks the organization's plan until the commit, without a check of the caller. @returns null when it does not exist. */
export async function lockPlan(tx: Transaction, orgId: string): Promise<PlanState | null> {
  const { plan, trialEndsAt } = organizations;
  const [state] = await tx
    .select({ plan, trialEndsAt })
    .from(organizations)
    .where(eq(organizations.id, orgId))
    .for("share");
  return state ?? null;
}

/**
 * Makes changes of an organization, of its members and of its invitations wait for each other. Rows that refer to the
 * organization are not locked, so that its tunnels and sessions can be used meanwhile.
 * @throws PermissionLostError
 */
export async function lockOrganization(
  tx: Transaction,
  actor: CallerActor,
): Promise<OrganizationRow> {
  const [org] = await tx
    .select()
    .from(organizations)
    .where(and(eq(organizations.id, actor.orgId), isNull(organizations.deletedAt)))
    .for("no key update");
  if (!org) throw new PermissionLostError(actor);
  await lockCaller(tx, actor);
  return org;
}
