/** The audit log. Rows are only ever inserted, in the transaction of what they tell of. */
import { chunks } from "./chunks.ts";
import type { Transaction } from "./transaction.ts";
import { auditEvents } from "./tables/audit.ts";

/** docs/api.md lists what each of them means. */
export const AUDIT_ACTIONS = [
  "account_created",
  "sign_up_repeated",
  "email_verified",
  "password_reset_requested",
  "password_reset",
  "identity_linked",
  "mfa_enabled",
  "mfa_disabled",
  "mfa_failed",
  "session_created",
  "session_revoked",
  "session_reuse_detected",
  "device_approved",
  "organization_created",
  "organization_updated",
  "organization_deleted",
  "organization_switched",
  "plan_changed",
  "subscription_changed",
  "invitation_created",
  "invitation_revoked",
  "invitation_accepted",
  "member_role_changed",
  "member_removed",
  "token_created",
  "token_revoked",
  "token_budget_set",
  "project_created",
  "project_renamed",
  "project_deleted",
  "tunnel_created",
  "tunnel_deleted",
  "tunnel_expired",
  "tunnel_started",
  "tunnel_stopped",
  "connection_ended",
  "tunnel_password_set",
  "tunnel_password_removed",
  "tunnel_edge_auth_set",
  "tunnel_edge_auth_removed",
  "tunnel_policy_set",
  "tunnel_policy_removed",
  "tunnel_inspector_set",
  "tunnel_maintenance_started",
  "tunnel_maintenance_ended",
  "tunnel_captures_cleared",
  "tunnel_request_replayed",
  "domain_claimed",
  "domain_verified",
  "domain_bound",
  "domain_unbound",
  "domain_released",
  "subdomain_reserved",
  "subdomain_released",
  "receiver_created",
  "receiver_rotated",
  "receiver_deleted",
  "tunnel_ip_allowlist_set",
  "tunnel_ip_allowlist_removed",
  "network_created",
  "network_deleted",
  "network_server_registered",
  "network_server_removed",
  "network_device_enrolled",
  "network_device_removed",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Who does something, and from where. null: nobody who is signed in, or the service itself. */
export interface Actor {
  orgId: string | null;
  userId: string | null;
  ip: string | null;
}

export interface AuditEvent extends Actor {
  action: AuditAction;
  resourceType:
    | "user"
    | "session"
    | "token"
    | "project"
    | "tunnel"
    | "connection"
    | "domain"
    | "subdomain"
    | "receiver"
    | "device"
    | "network"
    | "network_device"
    | "organization"
    | "subscription"
    | "invitation";
  resourceId: string;
  metadata?: Record<string, unknown>;
}

export async function insertAuditEvents(tx: Transaction, events: AuditEvent[]): Promise<void> {
  for (const rows of chunks(events)) await tx.insert(auditEvents).values(rows);
}
