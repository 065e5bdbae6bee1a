/** The audit log. A row is inserted in the transaction of the change that it records, and never changed. */
import { AUDIT_ACTIONS, type AuditAction } from "../../protocol/audit/audit-actions.ts";
import { requireFewChanges } from "./bounds.ts";
import { splitIntoChunks } from "./chunks.ts";
import { auditEvents, type AuditEvent } from "./tables/audit.ts";
import type { Transaction } from "./transaction.ts";

/** Who makes a change, and from which address. null: no user is signed in, or the service itself makes it. */
export interface Actor {
  orgId: string | null;
  userId: string | null;
  ip: string | null;
  /** The nonce of the token with which an agent makes the change; `userId` is the token's owner. */
  agentNonce?: string;
}

export type OrganizationActor = Actor & { orgId: string };
export type UserActor = Actor & { userId: string };

/** The service itself, for an organization: a job, or an event of another service. */
export function serviceActor(orgId: string): OrganizationActor {
  return { orgId, userId: null, ip: null };
}

/** The resource's type follows from the action. */
export function toAuditEvent(
  { orgId, userId, ip, agentNonce }: Actor,
  action: AuditAction,
  resourceId: string,
  details: Record<string, unknown> = {},
): AuditEvent {
  const resourceType = AUDIT_ACTIONS[action].resource;
  const agent = agentNonce === undefined ? {} : { by: "agent", tokenNonce: agentNonce };
  return {
    orgId,
    userId,
    ip,
    action,
    resourceType,
    resourceId,
    metadata: { ...details, ...agent },
  };
}

/** @throws LimitReachedError when the organization has made too many such changes. */
export async function insertAuditEvents(tx: Transaction, events: AuditEvent[]): Promise<void> {
  await requireFewChanges(tx, events);
  for (const rows of splitIntoChunks(events)) await tx.insert(auditEvents).values(rows);
}
