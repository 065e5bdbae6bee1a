/**
 * The gates of tunnels. Each change of a row's gates has the next settings version; the tunnel's object receives the new
 * settings through the outbox and applies the newest.
 */
import { and, eq, isNotNull, or, sql, type Column, type SQL } from "drizzle-orm";
import type { PgUpdateSetSource } from "drizzle-orm/pg-core";
import type { AllowList } from "../../../protocol/schemas/access/identity-gate.ts";
import { TrafficPolicy } from "../../../protocol/schemas/access/policies.ts";
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { hasFeature, type PlanState } from "../billing/plans.ts";
import type { AuditAction } from "../../../protocol/audit/audit-actions.ts";
import type { Feature } from "../../../protocol/schemas/accounts/entitlements.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import type { OrganizationActor } from "../audit.ts";
import { lockPlanAndRole, type MemberActor } from "../locks.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import { isUndeletedTunnel, isUnended, isUnendedTunnelIn } from "../tunnels/undeleted-tunnels.ts";
import { NEXT_SETTINGS_VERSION } from "../tunnels/settings-version.ts";

export type SettingOutcome =
  | "changed"
  | "not_found"
  /** The tunnel is of protocol `tcp`, and the setting applies to HTTP only. */
  | "not_http"
  | "upgrade_required"
  | "expired";

/** @param plan does not change before the commit. */
type ColumnValues = (plan: PlanState) => PgUpdateSetSource<typeof tunnels>;

/** @param auth null removes the password. */
export function setBasicAuth(
  db: Database,
  actor: MemberActor,
  id: string,
  auth: BasicAuth | null,
): Promise<SettingOutcome> {
  return changeTunnelSettings(db, actor, id, {
    columns: (plan) => toPasswordColumns(plan, auth),
    event: toPasswordEvent(auth),
    removes: auth ? undefined : isNotNull(tunnels.basicAuthHash),
    needs: auth ? "tunnel_password" : null,
  });
}

interface BasicAuth {
  username: string;
  passwordHash: string;
}

function toPasswordColumns(plan: PlanState, auth: BasicAuth | null) {
  const otherGate = { feature: "edge_identity_gate", column: tunnels.identityGate } as const;
  return {
    basicAuthUsername: auth?.username ?? null,
    basicAuthHash: auth?.passwordHash ?? null,
    ...(auth ? {} : { isBeyondPlan: remainsBeyondPlan(plan, otherGate) }),
  };
}

function toPasswordEvent(auth: BasicAuth | null): SettingEvent {
  return auth ? ["tunnel_password_set", { username: auth.username }] : ["tunnel_password_removed"];
}

/** @param identityGate the users who may pass after signing in. null removes the gate. */
export function setIdentityGate(
  db: Database,
  actor: MemberActor,
  id: string,
  identityGate: AllowList | null,
): Promise<SettingOutcome> {
  const event: SettingEvent = [identityGate ? "tunnel_edge_auth_set" : "tunnel_edge_auth_removed"];
  const otherGate = { feature: "tunnel_password", column: tunnels.basicAuthHash } as const;
  const columns: ColumnValues = (plan) => ({
    identityGate,
    ...(identityGate ? {} : { isBeyondPlan: remainsBeyondPlan(plan, otherGate) }),
  });
  const needs = identityGate ? "edge_identity_gate" : null;
  const removes = identityGate ? undefined : isNotNull(tunnels.identityGate);
  return changeTunnelSettings(db, actor, id, { columns, event, removes, needs });
}

/** When one gate is removed, the tunnel stays closed only if the plan lacks the other gate and the tunnel has it. */
function remainsBeyondPlan(
  plan: PlanState,
  otherGate: { feature: Feature; column: Column },
): SQL<boolean> {
  if (hasFeature(otherGate.feature, plan, new Date())) return sql`false`;
  return sql`${tunnels.isBeyondPlan} and ${isNotNull(otherGate.column)}`;
}

/** @param policy null removes it. */
export function setPolicy(
  db: Database,
  actor: MemberActor,
  id: string,
  policy: TrafficPolicy | null,
): Promise<SettingOutcome> {
  return changeTunnelSettings(db, actor, id, {
    columns: () => ({ policy }),
    event: toPolicyEvent(policy),
    removes: policy ? undefined : isNotNull(tunnels.policy),
  });
}

function toPolicyEvent(policy: TrafficPolicy | null): SettingEvent {
  if (policy === null) return ["tunnel_policy_removed"];
  return ["tunnel_policy_set", { actions: policy.actions.length }];
}

/** @param message null shows the default text. */
export function setMaintenance(
  db: Database,
  actor: MemberActor,
  id: string,
  { isOn, message }: { isOn: boolean; message: string | null },
): Promise<SettingOutcome> {
  return changeTunnelSettings(db, actor, id, {
    columns: () => ({ maintenance: isOn }),
    event: [isOn ? "tunnel_maintenance_started" : "tunnel_maintenance_ended"],
    removes: isOn ? undefined : eq(tunnels.maintenance, true),
    enqueueUpdate: ({ enqueue }, row) => {
      const maintenance = { version: row.settingsVersion, isOn, message };
      enqueue({ kind: "tunnel_maintenance", payload: { tunnelId: id, maintenance } });
    },
  });
}

/** For tunnels of every protocol. @param allowedCidrs canonical; null allows every address. */
export function setAllowedCidrs(
  db: Database,
  actor: MemberActor,
  id: string,
  allowedCidrs: string[] | null,
): Promise<SettingOutcome> {
  return changeTunnelSettings(db, actor, id, {
    columns: () => ({ allowedCidrs }),
    event: allowedCidrs
      ? ["tunnel_ip_allowlist_set", { cidrs: allowedCidrs }]
      : ["tunnel_ip_allowlist_removed"],
    removes: allowedCidrs ? undefined : isNotNull(tunnels.allowedCidrs),
    appliesTo: "any",
  });
}

/** @returns undefined when there is no such tunnel. A gate that is off is null. */
export async function findGates({ query }: Database, orgId: string, id: string) {
  const [row] = await query
    .select({
      username: tunnels.basicAuthUsername,
      identityGate: tunnels.identityGate,
      policy: tunnels.policy,
      allowedCidrs: tunnels.allowedCidrs,
      isInMaintenance: tunnels.maintenance,
    })
    .from(tunnels)
    .where(isUndeletedTunnel(orgId, id));
  return row;
}

/** For visitors, who have no organization. @returns null when there is no such tunnel or it has no identity gate. */
export async function findIdentityGate(
  { query }: Database,
  id: string,
): Promise<{ subdomain: string; allowList: AllowList } | null> {
  const [row] = await query
    .select({ subdomain: tunnels.subdomain, allowList: tunnels.identityGate })
    .from(tunnels)
    .where(and(eq(tunnels.id, id), isUnended));
  return row?.allowList ? { subdomain: row.subdomain, allowList: row.allowList } : null;
}

/** A gate that is undefined stays as it is. */
export interface AgentGateValues {
  /** null removes the password. */
  basicAuth: BasicAuth | null | undefined;
  /** null removes the policy. */
  policy: TrafficPolicy | null | undefined;
}

/**
 * For an agent that registers with gates. The caller has locked the plan, which has them, and the tunnel. The settings are sent
 * to the tunnel's object even if they are the same: it may not have received them before.
 */
export async function setAgentGates(
  change: UnitOfWork,
  actor: OrganizationActor,
  { tunnel, plan }: { tunnel: TunnelRow; plan: PlanState },
  { basicAuth, policy }: AgentGateValues,
): Promise<TunnelRow> {
  const isNewPolicy = policy !== undefined && !isSamePolicy(policy, tunnel.policy);
  // A new hash differs from the one before it, even for the same password.
  const isNewPassword =
    basicAuth === null ? tunnel.basicAuthHash !== null : basicAuth !== undefined;
  if (!isNewPassword && !isNewPolicy) {
    enqueueSettings(change, tunnel);
    return tunnel;
  }
  const [row] = await change.tx
    .update(tunnels)
    .set({
      ...(isNewPassword && toPasswordColumns(plan, basicAuth ?? null)),
      ...(isNewPolicy && { policy }),
      settingsVersion: NEXT_SETTINGS_VERSION,
    })
    .where(eq(tunnels.id, tunnel.id))
    .returning();
  const events = [
    ...(isNewPassword ? [toPasswordEvent(basicAuth ?? null)] : []),
    ...(isNewPolicy ? [toPolicyEvent(policy ?? null)] : []),
  ];
  for (const [action, details] of events) change.audit(actor, action, tunnel.id, details);
  enqueueSettings(change, row!);
  return row!;
}

/** PostgreSQL stores the fields of an object in another order. The schema puts them back into its own. */
function isSamePolicy(policy: TrafficPolicy | null, stored: TrafficPolicy | null): boolean {
  if (policy === null || stored === null) return policy === stored;
  const { data } = TrafficPolicy.safeParse(stored);
  return data !== undefined && JSON.stringify(policy) === JSON.stringify(data);
}

/**
 * After a change of the organization's plan. A tunnel with a gate that the plan lacks refuses every visitor; when the plan
 * has the gate again, it works as it was set.
 */
export async function applyPlanToGates(
  change: UnitOfWork,
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
    .set({ isBeyondPlan, settingsVersion: NEXT_SETTINGS_VERSION })
    .where(and(isUnendedTunnelIn(orgId), sql`${tunnels.isBeyondPlan} <> (${isBeyondPlan})`))
    .returning();
  for (const row of changed) enqueueSettings(change, row);
}

/** The action, and what was set, without secrets. */
type SettingEvent = [action: AuditAction, details?: Record<string, unknown>];

/** A change of a tunnel's row, and the message that its object receives. */
interface SettingUpdate {
  columns: ColumnValues;
  event: SettingEvent;
  /** For a removal: whether a tunnel has the setting. Removing one that it does not have leaves no event. */
  removes?: SQL | undefined;
  /** The feature that the plan must have. null: none. */
  needs?: Feature | null;
  /** The protocols of the tunnels that can have this setting. */
  appliesTo?: "http" | "any";
  /** Default: sends all gates. */
  enqueueUpdate?: (change: UnitOfWork, row: TunnelRow) => void | Promise<void>;
}

/**
 * Updates a tunnel's settings, the audit log and the tunnel's object. The organization's plan is locked, so that a change of
 * the plan comes before or after this one.
 */
export async function changeTunnelSettings(
  db: Database,
  actor: MemberActor,
  id: string,
  update: SettingUpdate,
): Promise<SettingOutcome> {
  const { columns, event, removes, needs } = update;
  const { appliesTo = "http", enqueueUpdate = enqueueSettings } = update;
  const isTunnel = isUndeletedTunnel(actor.orgId, id);
  return db.transaction(
    async (change) => {
      const plan = await lockPlanAndRole(change.tx, actor);
      if (needs && !hasFeature(needs, plan, new Date())) return "upgrade_required";
      const isEvent = !removes || (await lockTunnelWith(change.tx, isTunnel, removes));
      // Even if nothing changes, the tunnel's object may not have received the settings before.
      const [row] = await change.tx
        .update(tunnels)
        .set({ ...columns(plan), settingsVersion: NEXT_SETTINGS_VERSION })
        .where(isTunnel)
        .returning();
      if (!row) return "not_found";
      if (appliesTo === "http" && !isHttpProtocol(row.protocol)) return change.rollback("not_http");
      if (row.status === "expired") return change.rollback("expired");
      const [action, details] = event;
      if (isEvent) change.audit(actor, action, id, details);
      await enqueueUpdate(change, row);
      return "changed";
    },
    { requireDelivery: true },
  );
}

/** @returns whether the condition holds for the tunnel. Until the commit, no other transaction changes that. */
async function lockTunnelWith(tx: Transaction, isTunnel: SQL, condition: SQL): Promise<boolean> {
  const found = await tx
    .select({ id: tunnels.id })
    .from(tunnels)
    .where(and(isTunnel, condition))
    .for("no key update");
  return found.length > 0;
}

export function enqueueSettings({ enqueue }: UnitOfWork, row: TunnelRow): void {
  const { id, subdomain, settingsVersion: version, policy } = row;
  const { basicAuthUsername: username, basicAuthHash: passwordHash } = row;
  const basicAuth = username !== null && passwordHash !== null ? { username, passwordHash } : null;
  const identityGate = row.identityGate && { ...row.identityGate, tunnelId: id };
  const { allowedCidrs, isBeyondPlan } = row;
  const gates = { basicAuth, policy, identityGate, allowedCidrs, isBeyondPlan };
  const settings = { version, realm: subdomain, ...gates };
  enqueue({ kind: "tunnel_settings", payload: { tunnelId: id, settings } });
}
