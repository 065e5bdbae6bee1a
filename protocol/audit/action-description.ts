/** The description of an audit action in the list of actions. */

export const AUDIT_RESOURCES = [
  "user",
  "session",
  "token",
  "project",
  "tunnel",
  "connection",
  "domain",
  "subdomain",
  "receiver",
  "device",
  "network",
  "network_device",
  "organization",
  "subscription",
  "invitation",
] as const;
export type AuditResource = (typeof AUDIT_RESOURCES)[number];

export interface ActionDescription {
  resource: AuditResource;
  /**
   * What follows the name of the person in a sentence of the dashboard. `{it}` stands for the name of the resource, `{key}` for
   * the value of the event's metadata with this key.
   */
  predicate: string;
  /** The meaning of its event, for docs/api.md. */
  description: string;
}
