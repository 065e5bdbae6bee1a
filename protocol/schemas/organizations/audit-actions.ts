/**
 * The one list of audit actions: the resource that each is recorded for, and what its event means. The API's schema is
 * derived from it, and a test compares it with the table in docs/api.md.
 */
import { z } from "zod";

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

interface ActionDescription {
  resource: AuditResource;
  description: string;
}

export const AUDIT_ACTIONS = {
  account_created: { resource: "user", description: "The account was created." },
  sign_up_repeated: {
    resource: "user",
    description: "The address of this account was used for another sign-up.",
  },
  email_verified: { resource: "user", description: "The email address was confirmed." },
  password_reset_requested: {
    resource: "user",
    description: "An email with a link to reset the password was sent.",
  },
  password_reset: {
    resource: "user",
    description:
      "The password was reset with such a link; `metadata.keepTokens` says whether tokens were kept.",
  },
  identity_linked: {
    resource: "user",
    description: "The account can sign in with a provider; `metadata.provider` names it.",
  },
  mfa_enabled: { resource: "user", description: "Two-factor authentication was turned on." },
  mfa_disabled: {
    resource: "user",
    description: "Two-factor authentication was turned off; `metadata.factor` names the proof.",
  },
  mfa_failed: {
    resource: "user",
    description: "A factor of two-factor authentication was wrong; `metadata.factor` says which.",
  },
  mfa_removal_requested: {
    resource: "user",
    description: "A link that removes two-factor authentication after a day was mailed.",
  },
  mfa_removal_canceled: {
    resource: "user",
    description: "The removal of two-factor authentication was canceled.",
  },
  reauthentication_failed: {
    resource: "user",
    description:
      "A signed-in user sent a wrong password or code to prove who they are; `metadata.factor` says which.",
  },
  session_reauthenticated: {
    resource: "session",
    description: "The user proved again who they are; `metadata.factor` names the proof.",
  },
  session_created: {
    resource: "session",
    description:
      "The user signed in with `metadata.deviceName`; `newDevice` and `newAddress` say that no earlier sign-in had it.",
  },
  session_revoked: { resource: "session", description: "The session was ended." },
  session_reuse_detected: {
    resource: "session",
    description:
      "A refresh cookie that had been replaced was used again, so the session was ended.",
  },
  device_approved: {
    resource: "device",
    description: "A machine was signed in; `metadata.label` is its name.",
  },
  organization_created: { resource: "organization", description: "The organization was created." },
  organization_budget_set: {
    resource: "organization",
    description: "The monthly budget of the organization was set or removed.",
  },
  organization_updated: {
    resource: "organization",
    description: "The organization was renamed; `metadata` has `from` and `to`.",
  },
  organization_deleted: { resource: "organization", description: "The organization was deleted." },
  organization_switched: {
    resource: "organization",
    description: "A session of the user switched to this organization.",
  },
  plan_changed: {
    resource: "organization",
    description: "The plan changed; `metadata` has `from`, `to` and `reason`.",
  },
  subscription_changed: {
    resource: "subscription",
    description: "The payment provider reported a change of the subscription.",
  },
  invitation_created: {
    resource: "invitation",
    description: "An invitation was sent; `metadata` has the address and the role.",
  },
  invitation_revoked: { resource: "invitation", description: "The invitation was revoked." },
  invitation_accepted: {
    resource: "invitation",
    description: "The invited person became a member; `metadata.role` is their role.",
  },
  member_role_changed: {
    resource: "user",
    description:
      "The role of the member `metadata.email` changed, `metadata.from` one role `to` another.",
  },
  member_removed: {
    resource: "user",
    description: "The member `metadata.email` was removed, or left.",
  },
  token_created: {
    resource: "token",
    description: "A capability token was minted; `metadata` has its name and nonce.",
  },
  token_revoked: { resource: "token", description: "A capability token was revoked." },
  token_budget_set: {
    resource: "token",
    description: "The monthly budget of a capability token was set or removed.",
  },
  project_created: { resource: "project", description: "The project was created." },
  project_renamed: { resource: "project", description: "The project was renamed." },
  project_deleted: {
    resource: "project",
    description: "The project was deleted with its tunnels and tokens.",
  },
  tunnel_created: { resource: "tunnel", description: "The tunnel was created." },
  tunnel_deleted: { resource: "tunnel", description: "The tunnel was deleted." },
  tunnel_expired: { resource: "tunnel", description: "The tunnel has expired." },
  tunnel_started: {
    resource: "tunnel",
    description: "The tunnel was started: agents may serve it.",
  },
  tunnel_stopped: {
    resource: "tunnel",
    description: "The tunnel was stopped: its agent was disconnected, and none may serve it.",
  },
  tunnel_shards_set: {
    resource: "tunnel",
    description: "The number of objects that the tunnel's visitors are spread over was set.",
  },
  connection_ended: {
    resource: "connection",
    description: "An agent was disconnected; `metadata.tunnelId` is the tunnel that it served.",
  },
  tunnel_password_set: { resource: "tunnel", description: "A password is required of visitors." },
  tunnel_password_removed: { resource: "tunnel", description: "The password was removed." },
  tunnel_edge_auth_set: { resource: "tunnel", description: "Visitors must sign in." },
  tunnel_edge_auth_removed: {
    resource: "tunnel",
    description: "Visitors need not sign in any more.",
  },
  tunnel_policy_set: { resource: "tunnel", description: "A traffic policy was set." },
  tunnel_policy_removed: { resource: "tunnel", description: "The traffic policy was removed." },
  visitor_token_minted: {
    resource: "tunnel",
    description: "A visitor's token was minted; `metadata` has `subject` and `expiresAt`.",
  },
  tunnel_inspector_set: {
    resource: "tunnel",
    description: "The settings of the inspector were changed.",
  },
  tunnel_ip_allowlist_set: {
    resource: "tunnel",
    description: "Visitors may come from the listed addresses only.",
  },
  tunnel_ip_allowlist_removed: {
    resource: "tunnel",
    description: "Visitors may come from any address.",
  },
  tunnel_maintenance_started: { resource: "tunnel", description: "The maintenance page is shown." },
  tunnel_maintenance_ended: {
    resource: "tunnel",
    description: "The maintenance page is not shown any more.",
  },
  tunnel_captures_cleared: {
    resource: "tunnel",
    description: "The captured requests were deleted.",
  },
  tunnel_request_replayed: {
    resource: "tunnel",
    description: "A captured request was sent again; `metadata.capture` is its id.",
  },
  domain_claimed: { resource: "domain", description: "A custom domain was added, unverified." },
  domain_verified: {
    resource: "domain",
    description: "The organization has proved that the domain is its own.",
  },
  domain_proof_missing: {
    resource: "domain",
    description:
      "The record of the verified domain was not found. The domain is released at `metadata.releaseAt` unless it is back.",
  },
  domain_proof_found: {
    resource: "domain",
    description: "The record of the verified domain is back.",
  },
  domain_bound: {
    resource: "domain",
    description: "The domain leads to the tunnel `metadata.tunnelId`.",
  },
  domain_unbound: { resource: "domain", description: "The domain leads to no tunnel any more." },
  domain_released: {
    resource: "domain",
    description:
      "The domain was removed. Without a user: it was not verified in time, its record was missing for 7 days, or another organization verified it (`metadata.reason`).",
  },
  subdomain_reserved: { resource: "subdomain", description: "The subdomain was reserved." },
  subdomain_released: {
    resource: "subdomain",
    description: "The reservation of the subdomain was given up.",
  },
  receiver_created: { resource: "receiver", description: "The webhook receiver was created." },
  receiver_rotated: { resource: "receiver", description: "The receiver has a new secret." },
  receiver_deleted: { resource: "receiver", description: "The webhook receiver was deleted." },
  network_created: { resource: "network", description: "The private network was created." },
  network_deleted: { resource: "network", description: "The private network was deleted." },
  network_server_registered: {
    resource: "network",
    description: "A server was registered; `metadata` has its public key and port.",
  },
  network_server_removed: { resource: "network", description: "The server was removed." },
  network_device_enrolled: {
    resource: "network_device",
    description: "A device was enrolled in the network `metadata.networkId`.",
  },
  network_device_removed: {
    resource: "network_device",
    description: "A device was removed from the network `metadata.networkId`.",
  },
} as const satisfies Record<string, ActionDescription>;

export type AuditAction = keyof typeof AUDIT_ACTIONS;
export const AuditAction = z.enum(Object.keys(AUDIT_ACTIONS) as [AuditAction, ...AuditAction[]]);
