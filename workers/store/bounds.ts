/**
 * How many rows an organization may have, and how many changes it may make. Each change leaves an audit event, and many
 * leave a row that is stored after its end; so without a bound of changes, creating and deleting would fill the database.
 */
import { and, eq, gt, sql, type SQL } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { AuditAction } from "../../protocol/audit/audit-actions.ts";
import { DAY_MS, HOUR_MS } from "../../shared/time.ts";
import { ago } from "./clock.ts";
import { auditEvents, type AuditEvent } from "./tables/audit.ts";
import type { Transaction } from "./transaction.ts";

/** Changes of one kind, by one organization, in 24 hours. */
export const CHANGES_OF_A_KIND_DAILY_MAX = 10_000;

/** How many of each one organization may have at a time. Those that have ended do not count. */
export const ORGANIZATION_MAXIMA = {
  tunnels: 2_000,
  capability_tokens: 10_000,
  master_keys: 100,
  projects: 1_000,
  verified_domains: 1_000,
  members: 1_000,
} as const;

type BoundedResource = keyof typeof ORGANIZATION_MAXIMA;

/** A bound is reached. The message names it. */
export class LimitReachedError extends Error {
  override name = "LimitReachedError";
  /** null: waiting does not help. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * For a row that is about to be inserted. Insertions of the same kind wait for each other until the commit, so that they
 * count each other.
 * @throws LimitReachedError
 */
export async function requireRoom(
  tx: Transaction,
  orgId: string,
  resource: BoundedResource,
  counted: { table: PgTable; condition: SQL | undefined },
): Promise<void> {
  await tx.execute(sql`select ${buildLock(orgId, resource)}`);
  const max = ORGANIZATION_MAXIMA[resource];
  if ((await tx.$count(counted.table, counted.condition)) < max) return;
  const noun = resource.replace("_", " ");
  throw new LimitReachedError(`An organization can have at most ${max} ${noun} at a time.`);
}

/** Until the commit, no other transaction with this lock inserts such a row. */
export function buildLock(orgId: string, resource: BoundedResource | "relay_ports"): SQL {
  return sql`pg_advisory_xact_lock(hashtextextended(${`${resource} of ${orgId}`}, 0))`;
}

/**
 * These are never refused: actions that end or revoke something, because each needs a creation that counts, and actions that
 * a user's sign-in causes, which have bounds of their own.
 */
const UNCOUNTED_ACTIONS: ReadonlySet<AuditAction> = new Set([
  "account_created",
  "sign_up_repeated",
  "email_verified",
  "password_reset_requested",
  "password_reset",
  "identity_linked",
  "mfa_enabled",
  "mfa_disabled",
  "mfa_failed",
  "mfa_removal_requested",
  "mfa_removal_canceled",
  "reauthentication_failed",
  "session_reauthenticated",
  "session_created",
  "session_revoked",
  "session_reuse_detected",
  "organization_created",
  "organization_deleted",
  "subscription_changed",
  "invitation_revoked",
  "invitation_accepted",
  "member_removed",
  "token_revoked",
  "project_deleted",
  "tunnel_deleted",
  "tunnel_expired",
  "tunnel_stopped",
  "connection_ended",
  "domain_unbound",
  "domain_released",
  "subdomain_released",
  "receiver_deleted",
  "network_deleted",
  "network_server_removed",
  "network_device_removed",
]);

/**
 * Concurrent changes may exceed the bound by their number.
 * @param events of one change, not inserted yet.
 * @throws LimitReachedError when the organization has made too many changes of a kind in 24 hours.
 */
export async function requireFewChanges(tx: Transaction, events: AuditEvent[]): Promise<void> {
  const counted = events.filter(isCounted);
  const kinds = Map.groupBy(counted, ({ orgId, action }) => `${orgId} ${action}`);
  for (const [first] of kinds.values()) {
    const { orgId, action } = first!;
    const { rows } = await tx.execute<{ changes: number }>(
      sql`select ${countRecentChanges(orgId!, action)} as changes`,
    );
    if (rows[0]!.changes < CHANGES_OF_A_KIND_DAILY_MAX) continue;
    throw new LimitReachedError(
      `An organization can make at most ${CHANGES_OF_A_KIND_DAILY_MAX} changes of the kind ${action} in 24 hours.`,
      HOUR_MS,
    );
  }
}

/** Changes of a kind in 24 hours, as far as the bound. */
export function countRecentChanges(orgId: string, action: AuditAction): SQL {
  const isRecent = and(
    eq(auditEvents.orgId, orgId),
    eq(auditEvents.action, action),
    gt(auditEvents.createdAt, ago(DAY_MS)),
  );
  return sql`(select count(*)::int from (select from ${auditEvents} where ${isRecent}
    limit ${CHANGES_OF_A_KIND_DAILY_MAX}) as recent)`;
}

/** The service's own changes follow from changes of callers. */
function isCounted({ orgId, userId, ip, action }: AuditEvent): boolean {
  const isByService = userId === null && ip === null;
  return Boolean(orgId) && !isByService && !UNCOUNTED_ACTIONS.has(action);
}
