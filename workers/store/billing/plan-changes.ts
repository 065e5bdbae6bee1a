/**
 * An organization's plan becomes another one. What it has stays; what the plan lacks stops in the same
 * transaction, and the objects of its tunnels are told with the commit.
 */
import { and, count, eq, gt, isNotNull, isNull, ne, sql } from "drizzle-orm";
import type { OverLimit } from "../../../protocol/schemas/billing.ts";
import type { Plan } from "../../config/config.ts";
import { isBetter, mayUse, PLAN_TERMS, type Feature, type PlanState } from "./plans.ts";
import { fitRetentionToPlan } from "../inspector/capturing.ts";
import type { Change, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { fitGatesToPlan } from "../access/gates.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { republishReceivers } from "../webhooks/receivers.ts";
import { users } from "../tables/accounts.ts";
import { tokens } from "../tables/tokens.ts";
import { reservedSubdomains } from "../tables/domains.ts";
import { memberships, organizations } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import { liveTunnels } from "../tunnels/live-rows.ts";

/** Why a plan is another one now. */
export type PlanReason = "paid" | "payment_overdue" | "unpaid" | "canceled" | "paused";

export interface Downgrade {
  organization: string;
  from: Plan;
  to: Plan;
  reason: PlanReason;
  overLimits: OverLimit[];
}

/** Mails to owners, sealed. */
export interface PlanNotices {
  downgraded(to: string, downgrade: Downgrade): Promise<OutboxMessage>;
  overdue(
    to: string,
    payment: { organization: string; plan: Plan; graceEndsAt: Date },
  ): Promise<OutboxMessage>;
}

/** What changes of plans depend on besides the rows. */
export interface PlanRules {
  /** What holds where nothing is paid for. */
  unpaidPlan: Plan;
  hosted: boolean;
  notices: PlanNotices;
}

type Organization = typeof organizations.$inferSelect;

/** The same plan again changes nothing. @param org locked by the change. */
export async function changePlan(
  change: Change,
  org: Organization,
  { plan, reason }: { plan: Plan; reason: PlanReason },
  { hosted, notices }: PlanRules,
): Promise<void> {
  const { id: orgId, plan: from } = org;
  if (plan === from) return;
  const now = new Date();
  const planState = { ...org, plan };
  await change.tx.update(organizations).set({ plan }).where(eq(organizations.id, orgId));
  change.audit({ orgId, userId: null, ip: null }, "plan_changed", orgId, { from, to: plan, reason });
  await adjustExpiry(change, orgId, PLAN_TERMS[plan].tunnelTtlSeconds, isBetter(plan, from));
  await fitGatesToPlan(change, orgId, {
    tunnelPassword: mayUse("tunnelPassword", planState, now),
    identityGate: mayUse("identityGate", planState, now),
  });
  await republishReceivers(change, orgId, plan);
  await fitRetentionToPlan(change, orgId);
  if (!isBetter(from, plan)) return;
  const overLimits = await findOverLimits(change.tx, orgId, planState, hosted);
  const downgrade = { organization: org.name, from, to: plan, reason, overLimits };
  for (const email of await listOwners(change.tx, orgId)) {
    change.enqueue(await notices.downgraded(email, downgrade));
  }
}

/**
 * As if the tunnels were made now. An object that was told of an earlier end asks its row by then, so only
 * what ends sooner has to be told.
 */
async function adjustExpiry(
  { tx, enqueue }: Change,
  orgId: string,
  seconds: number | null,
  isPutOff: boolean,
): Promise<void> {
  const granted = sql`now() + ${seconds}::bigint * interval '1 second'`;
  // Without either it never ends; `least` passes over what is null.
  const end = sql`least(${tunnels.askedEnd}, ${granted})`;
  const { expiresAt } = tunnels;
  const moved = await tx
    .update(tunnels)
    .set({ expiresAt: end })
    .where(
      and(
        liveTunnels(orgId),
        ne(tunnels.status, "expired"),
        isPutOff
          ? sql`${expiresAt} < coalesce(${end}, 'infinity')`
          : sql`coalesce(${expiresAt}, 'infinity') > ${end}`,
      ),
    )
    .returning({ tunnelId: tunnels.id, expiresAt });
  if (isPutOff) return;
  for (const { tunnelId, expiresAt } of moved) {
    if (expiresAt)
      enqueue({ kind: "tunnel_ends", payload: { tunnelId, atMs: expiresAt.getTime() } });
  }
}

export async function listOwners(tx: Transaction, orgId: string): Promise<string[]> {
  const owners = await tx
    .select({ email: users.email })
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .where(and(eq(memberships.orgId, orgId), eq(memberships.role, "owner")));
  return owners.map(({ email }) => email);
}

/** What an organization has and may not use: only what it has more of than its plan allows. */
export async function findOverLimits(
  query: Database["query"] | Transaction,
  orgId: string,
  standing: PlanState,
  hosted: boolean,
): Promise<OverLimit[]> {
  const stopped = and(
    liveTunnels(orgId),
    ne(tunnels.status, "expired"),
    eq(tunnels.isBeyondPlan, true),
  );
  const [names, gates, masters] = [
    await query
      .select({ count: count() })
      .from(reservedSubdomains)
      .where(eq(reservedSubdomains.orgId, orgId)),
    await query
      .select({
        passwords: sql<number>`count(*) filter (where ${isNotNull(tunnels.basicAuthHash)})::int`,
        identity: sql<number>`count(*) filter (where ${isNotNull(tunnels.identityGate)})::int`,
      })
      .from(tunnels)
      .where(stopped),
    await query
      .select({ count: count() })
      .from(tokens)
      .where(
        and(
          eq(tokens.orgId, orgId),
          eq(tokens.kind, "master"),
          isNull(tokens.revokedAt),
          gt(tokens.expiresAt, sql`now()`),
        ),
      ),
  ];
  const now = new Date();
  const lacks = (feature: Feature) => !mayUse(feature, standing, now);
  const allowedNames = PLAN_TERMS[standing.plan].maxReservedSubdomains ?? Infinity;
  const found: OverLimit[] = [];
  const note = (what: OverLimit["what"], count: number, allowed = 0) => {
    if (count > allowed) found.push({ what, count, allowed });
  };
  note("reserved_subdomains", names[0]!.count, allowedNames);
  if (lacks("tunnelPassword")) note("tunnel_passwords", gates[0]!.passwords);
  if (lacks("identityGate")) note("identity_gates", gates[0]!.identity);
  if (hosted && lacks("masterKeys")) note("master_keys", masters[0]!.count);
  return found;
}
