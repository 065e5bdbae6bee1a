/**
 * Changes of an organization's plan. Nothing is deleted; features that the new plan lacks stop in the same transaction,
 * and the objects of its tunnels receive that with the commit.
 */
import { and, count, eq, gt, isNotNull, isNull, sql } from "drizzle-orm";
import type { OverLimit } from "../../../protocol/schemas/billing.ts";
import type { Plan } from "../../../protocol/plans.ts";
import { PLAN_LIMITS, type Feature } from "../../../protocol/schemas/accounts/entitlements.ts";
import { isBetter, hasFeature, type PlanState } from "./plans.ts";
import { serviceActor } from "../audit.ts";
import { applyPlanToRetention } from "../inspector/capture-settings.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { applyPlanToGates } from "../access/gates.ts";
import { mailOwners } from "../organizations/memberships.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { republishReceivers } from "../webhooks/receivers.ts";
import { tokens } from "../tables/tokens.ts";
import { reservedSubdomains } from "../tables/domains.ts";
import { organizations } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUnendedTunnelIn } from "../tunnels/undeleted-tunnels.ts";

/** Why a plan has changed. */
export type PlanReason = "paid" | "payment_overdue" | "unpaid" | "canceled" | "paused";

export interface Downgrade {
  organization: string;
  from: Plan;
  to: Plan;
  reason: PlanReason;
  overLimits: OverLimit[];
}

/** Mails to owners, encrypted for the outbox. */
interface PlanNotices {
  downgraded(to: string, downgrade: Downgrade): Promise<OutboxMessage>;
  overdue(
    to: string,
    payment: { organization: string; plan: Plan; graceEndsAt: Date },
  ): Promise<OutboxMessage>;
}

/** Settings that a change of plan depends on. */
export interface PlanRules {
  /** The plan of an organization that pays for none. */
  unpaidPlan: Plan;
  isHosted: boolean;
  notices: PlanNotices;
}

type Organization = typeof organizations.$inferSelect;

/** @param org locked by the change. The same plan again changes nothing. */
export async function changePlan(
  change: UnitOfWork,
  org: Organization,
  { plan, reason }: { plan: Plan; reason: PlanReason },
  { isHosted, notices }: PlanRules,
): Promise<void> {
  const { id: orgId, plan: from } = org;
  if (plan === from) return;
  const now = new Date();
  const planState = { ...org, plan };
  await change.tx.update(organizations).set({ plan }).where(eq(organizations.id, orgId));
  change.audit(serviceActor(orgId), "plan_changed", orgId, { from, to: plan, reason });
  await adjustExpiry(change, orgId, PLAN_LIMITS[plan].tunnel_ttl_seconds, isBetter(plan, from));
  await applyPlanToGates(change, orgId, {
    tunnelPassword: hasFeature("tunnel_password", planState, now),
    identityGate: hasFeature("edge_identity_gate", planState, now),
  });
  await republishReceivers(change, orgId, plan);
  await applyPlanToRetention(change, orgId);
  if (!isBetter(from, plan)) return;
  const overLimits = await findOverLimits(change.tx, orgId, planState, isHosted);
  const downgrade = { organization: org.name, from, to: plan, reason, overLimits };
  await mailOwners(change, orgId, (to) => notices.downgraded(to, downgrade));
}

/**
 * Gives tunnels the expiry that they would get if they were created now. A tunnel's object reads its row when the expiry
 * that it knows is reached, so that only an earlier expiry has to be sent to it.
 */
async function adjustExpiry(
  { tx, enqueue }: UnitOfWork,
  orgId: string,
  seconds: number | null,
  isLater: boolean,
): Promise<void> {
  const granted = sql`now() + ${seconds}::bigint * interval '1 second'`;
  // Without both it never expires: `least` ignores nulls.
  const end = sql`least(${tunnels.requestedExpiresAt}, ${granted})`;
  const { expiresAt } = tunnels;
  const moved = await tx
    .update(tunnels)
    .set({ expiresAt: end })
    .where(
      and(
        isUnendedTunnelIn(orgId),
        isLater
          ? sql`${expiresAt} < coalesce(${end}, 'infinity')`
          : sql`coalesce(${expiresAt}, 'infinity') > ${end}`,
      ),
    )
    .returning({ tunnelId: tunnels.id, expiresAt });
  if (isLater) return;
  for (const { tunnelId, expiresAt } of moved) {
    if (expiresAt)
      enqueue({ kind: "tunnel_ends", payload: { tunnelId, atMs: expiresAt.getTime() } });
  }
}

/** The features that an organization has more of than its plan allows. */
export async function findOverLimits(
  query: Database["query"] | Transaction,
  orgId: string,
  planState: PlanState,
  isHosted: boolean,
): Promise<OverLimit[]> {
  const beyondPlan = and(isUnendedTunnelIn(orgId), eq(tunnels.isBeyondPlan, true));
  const [names] = await query
    .select({ count: count() })
    .from(reservedSubdomains)
    .where(eq(reservedSubdomains.orgId, orgId));
  const [gates] = await query
    .select({
      passwords: sql<number>`count(*) filter (where ${isNotNull(tunnels.basicAuthHash)})::int`,
      identity: sql<number>`count(*) filter (where ${isNotNull(tunnels.identityGate)})::int`,
    })
    .from(tunnels)
    .where(beyondPlan);
  const [masters] = await query
    .select({ count: count() })
    .from(tokens)
    .where(
      and(
        eq(tokens.orgId, orgId),
        eq(tokens.kind, "master"),
        isNull(tokens.revokedAt),
        gt(tokens.expiresAt, sql`now()`),
      ),
    );
  const now = new Date();
  const lacks = (feature: Feature) => !hasFeature(feature, planState, now);
  const allowedSubdomains = PLAN_LIMITS[planState.plan].max_reserved_subdomains ?? Infinity;
  const found: OverLimit[] = [];
  const add = (what: OverLimit["what"], count: number, allowed = 0) => {
    if (count > allowed) found.push({ what, count, allowed });
  };
  add("reserved_subdomains", names!.count, allowedSubdomains);
  if (lacks("tunnel_password")) add("tunnel_passwords", gates!.passwords);
  if (lacks("edge_identity_gate")) add("identity_gates", gates!.identity);
  if (isHosted && lacks("master_keys")) add("master_keys", masters!.count);
  return found;
}
