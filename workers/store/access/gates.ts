/**
 * What an owner puts before a tunnel. The row says what it is, and each change of it has the next version;
 * the tunnel's object keeps the newest and is told in the change's outbox.
 */
import { and, eq, isNotNull, isNull, ne, or, sql, type Column, type SQL } from "drizzle-orm";
import type { PgUpdateSetSource } from "drizzle-orm/pg-core";
import type { AllowList } from "../../../protocol/schemas/access/edge-auth.ts";
import type { TrafficPolicy } from "../../../protocol/schemas/access/policies.ts";
import { mayUse, type Feature, type PlanState } from "../billing/plans.ts";
import type { AuditAction } from "../../../protocol/schemas/organizations/audit-actions.ts";
import type { Change, Database } from "../database.ts";
import { lockPlanAndRole, type MemberActor } from "../locks.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import { liveTunnel, liveTunnels } from "../tunnels/live-tunnels.ts";

/** `changed_unheard`: it is made, and its object will hear of it, but has not yet. */
export type GateChange =
  | "changed"
  | "not_found"
  /** The tunnel is of protocol `tcp`, and what was to be changed speaks HTTP. */
  | "not_http"
  | "upgrade_required";

/** @param plan as it stays until the commit. */
type Values = (plan: PlanState) => PgUpdateSetSource<typeof tunnels>;

/** @param auth null: none. */
export function setBasicAuth(
  db: Database,
  actor: MemberActor,
  id: string,
  auth: { username: string; passwordHash: string } | null,
): Promise<GateChange> {
  const left = { feature: "identityGate", column: tunnels.identityGate } as const;
  const values: Values = (plan) => ({
    basicAuthUsername: auth?.username ?? null,
    basicAuthHash: auth?.passwordHash ?? null,
    ...(auth ? {} : { isBeyondPlan: remainsBeyondPlan(plan, left) }),
  });
  const action = auth ? "tunnel_password_set" : "tunnel_password_removed";
  return changeGates(db, actor, id, values, action, enqueueSettings, auth ? "tunnelPassword" : null);
}

/** @param identityGate who of those who sign in may pass. null: there is no such gate. */
export function setIdentityGate(
  db: Database,
  actor: MemberActor,
  id: string,
  identityGate: AllowList | null,
): Promise<GateChange> {
  const action = identityGate ? "tunnel_edge_auth_set" : "tunnel_edge_auth_removed";
  const left = { feature: "tunnelPassword", column: tunnels.basicAuthHash } as const;
  const values: Values = (plan) => ({
    identityGate,
    ...(identityGate ? {} : { isBeyondPlan: remainsBeyondPlan(plan, left) }),
  });
  const needs = identityGate ? "identityGate" : null;
  return changeGates(db, actor, id, values, action, enqueueSettings, needs);
}

/** While what is left is there, and the plan lacks it. */
function remainsBeyondPlan(
  plan: PlanState,
  left: { feature: Feature; column: Column },
): SQL<boolean> {
  if (mayUse(left.feature, plan, new Date())) return sql`false`;
  return sql`${tunnels.isBeyondPlan} and ${isNotNull(left.column)}`;
}

/** @param policy null: none. */
export function setPolicy(
  db: Database,
  actor: MemberActor,
  id: string,
  policy: TrafficPolicy | null,
): Promise<GateChange> {
  const action = policy ? "tunnel_policy_set" : "tunnel_policy_removed";
  return changeGates(db, actor, id, () => ({ policy }), action, enqueueSettings);
}

/** @param message null: the page's own. */
export function setMaintenance(
  db: Database,
  actor: MemberActor,
  id: string,
  { isOn, message }: { isOn: boolean; message: string | null },
): Promise<GateChange> {
  const action = isOn ? "tunnel_maintenance_started" : "tunnel_maintenance_ended";
  return changeGates(
    db,
    actor,
    id,
    () => ({ maintenance: isOn }),
    action,
    ({ enqueue }, row) => {
      const maintenance = { version: row.settingsVersion, isOn, message };
      enqueue({ kind: "tunnel_maintenance", payload: { tunnelId: id, maintenance } });
    },
  );
}

/** Holds for tunnels of every protocol. @param allowedCidrs canonical. null: visitors come from anywhere. */
export function setAllowedCidrs(
  db: Database,
  actor: MemberActor,
  id: string,
  allowedCidrs: string[] | null,
): Promise<GateChange> {
  const action = allowedCidrs ? "tunnel_ip_allowlist_set" : "tunnel_ip_allowlist_removed";
  return changeGates(db, actor, id, () => ({ allowedCidrs }), action, enqueueSettings, null, "any");
}

/** @returns undefined when there is no such tunnel, null when its visitors come from anywhere. */
export async function findAllowedCidrs(
  { query }: Database,
  orgId: string,
  id: string,
): Promise<string[] | null | undefined> {
  const [row] = await query
    .select({ allowedCidrs: tunnels.allowedCidrs })
    .from(tunnels)
    .where(liveTunnel(orgId, id));
  return row?.allowedCidrs;
}

/** @returns undefined when there is no such tunnel, null when it has no policy. */
export async function findPolicy(
  { query }: Database,
  orgId: string,
  id: string,
): Promise<TrafficPolicy | null | undefined> {
  const [row] = await query
    .select({ policy: tunnels.policy })
    .from(tunnels)
    .where(liveTunnel(orgId, id));
  return row?.policy;
}

/** For visitors, who have no organization. @returns null when there is no such tunnel, or no gate. */
export async function findIdentityGate(
  { query }: Database,
  id: string,
): Promise<{ subdomain: string; allowList: AllowList } | null> {
  const [row] = await query
    .select({ subdomain: tunnels.subdomain, allowList: tunnels.identityGate })
    .from(tunnels)
    .where(and(eq(tunnels.id, id), isNull(tunnels.deletedAt), ne(tunnels.status, "expired")));
  return row?.allowList ? { subdomain: row.subdomain, allowList: row.allowList } : null;
}

/**
 * For a plan that an organization has from now on: where it lacks what stands before a tunnel, nobody gets
 * through, and where it has it again, the gates work as they were set.
 */
export async function applyPlanToGates(
  change: Change,
  orgId: string,
  { tunnelPassword, identityGate }: { tunnelPassword: boolean; identityGate: boolean },
): Promise<void> {
  const lacks = or(
    ...(tunnelPassword ? [] : [isNotNull(tunnels.basicAuthHash)]),
    ...(identityGate ? [] : [isNotNull(tunnels.identityGate)]),
  );
  const isBeyondPlan = sql<boolean>`${lacks ?? sql`false`}`;
  const changed = await change.tx
    .update(tunnels)
    .set({ isBeyondPlan, settingsVersion: sql`${tunnels.settingsVersion} + 1` })
    .where(
      and(
        liveTunnels(orgId),
        ne(tunnels.status, "expired"),
        sql`${tunnels.isBeyondPlan} <> (${isBeyondPlan})`,
      ),
    )
    .returning();
  for (const row of changed) enqueueSettings(change, row);
}

/**
 * @param needs what the plan must have for it.
 * @param appliesTo the protocols of tunnels that can have it.
 */
async function changeGates(
  db: Database,
  actor: MemberActor,
  id: string,
  values: Values,
  action: AuditAction,
  enqueueUpdate: (change: Change, row: TunnelRow) => void,
  needs: Feature | null = null,
  appliesTo: "http" | "any" = "http",
): Promise<GateChange> {
  return db.transaction(
    async (change) => {
      const plan = await lockPlanAndRole(change.tx, actor);
      if (needs && !mayUse(needs, plan, new Date())) return "upgrade_required";
      const [row] = await change.tx
        .update(tunnels)
        .set({ ...values(plan), settingsVersion: sql`${tunnels.settingsVersion} + 1` })
        .where(liveTunnel(actor.orgId, id))
        .returning();
      if (!row) return "not_found";
      if (row.protocol === "tcp" && appliesTo === "http") return change.rollback("not_http");
      change.audit(actor, action, id);
      enqueueUpdate(change, row);
      return "changed";
    },
    { requireDelivery: true },
  );
}

export function enqueueSettings({ enqueue }: Change, row: TunnelRow): void {
  const { id, subdomain, settingsVersion: version, policy } = row;
  const { basicAuthUsername: username, basicAuthHash: passwordHash } = row;
  const basicAuth = username !== null && passwordHash !== null ? { username, passwordHash } : null;
  const identityGate = row.identityGate && { ...row.identityGate, tunnelId: id };
  const { allowedCidrs, isBeyondPlan } = row;
  const gates = { basicAuth, policy, identityGate, allowedCidrs, isBeyondPlan };
  const settings = { version, realm: subdomain, ...gates };
  enqueue({ kind: "tunnel_settings", payload: { tunnelId: id, settings } });
}
