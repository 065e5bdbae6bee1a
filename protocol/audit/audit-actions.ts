/**
 * The one list of audit actions. The API's schema and the dashboard's sentences are derived from it, and a test compares it
 * with the table in docs/api.md. It imports no library, because browser pages import it too.
 */
import { ACCOUNT_ACTIONS } from "./accounts.ts";
import { DOMAIN_ACTIONS } from "./domains.ts";
import { NETWORK_ACTIONS } from "./networks.ts";
import { ORGANIZATION_ACTIONS } from "./organizations.ts";
import { TUNNEL_ACTIONS } from "./tunnels.ts";
import { WEBHOOK_ACTIONS } from "./webhooks.ts";

export const AUDIT_ACTIONS = {
  ...ACCOUNT_ACTIONS,
  ...ORGANIZATION_ACTIONS,
  ...TUNNEL_ACTIONS,
  ...DOMAIN_ACTIONS,
  ...WEBHOOK_ACTIONS,
  ...NETWORK_ACTIONS,
};

export type AuditAction = keyof typeof AUDIT_ACTIONS;
export const AUDIT_ACTION_NAMES = Object.keys(AUDIT_ACTIONS) as [AuditAction, ...AuditAction[]];
