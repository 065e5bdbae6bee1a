/** Audit events as sentences: who did what to which thing. */
import type { AuditAction } from "../../../protocol/schemas/organizations/audit-actions.ts";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import { formatFormerMember } from "../../api/organization/organizations.ts";

/**
 * What follows the name of the person. `{it}` stands for the name of the resource, `{key}` for the value of the event's
 * metadata with this key.
 */
const PREDICATES: Record<AuditAction, string> = {
  account_created: "created the account",
  sign_up_repeated: "had another sign-up with the address of the account",
  email_verified: "confirmed the email address",
  password_reset_requested: "was sent a link to reset the password",
  password_reset: "reset the password with a mailed link",
  identity_linked: "linked the sign-in provider {provider}",
  mfa_enabled: "turned on two-factor authentication",
  mfa_disabled: "turned off two-factor authentication with {factor}",
  mfa_failed: "failed the second step of a sign-in with {factor}",
  mfa_removal_requested: "requested a link that removes two-factor authentication",
  mfa_removal_canceled: "canceled the removal of two-factor authentication",
  reauthentication_failed: "failed to prove who they are with {factor}",
  session_reauthenticated: "proved again who they are with {factor}",
  session_created: "signed in",
  session_revoked: "ended a session",
  session_reuse_detected: "had a session ended, because its old cookie was used again",
  device_approved: "approved the sign-in of the machine {it}",
  organization_created: "created the organization",
  organization_budget_set: "set the monthly budget of the organization",
  organization_updated: "renamed the organization from {from} to {to}",
  organization_deleted: "deleted the organization",
  organization_switched: "switched to the organization",
  plan_changed: "changed the plan from {from} to {to}",
  subscription_changed: "changed the subscription: {plan}, {status}",
  invitation_created: "invited {email} as {role}",
  invitation_revoked: "revoked an invitation",
  invitation_accepted: "accepted an invitation as {role}",
  member_role_changed: "changed the role of {it} from {from} to {to}",
  member_removed: "removed the member {it}",
  token_created: "minted the token {it}",
  token_revoked: "revoked the token {it}",
  token_budget_set: "set the monthly budget of the token {it}",
  project_created: "created the project {it}",
  project_renamed: "renamed the project {slug} to {name}",
  project_deleted: "deleted the project {it}",
  tunnel_created: "created the tunnel {it}",
  tunnel_deleted: "deleted the tunnel {it}",
  tunnel_expired: "ended the tunnel {it}, which had expired",
  tunnel_started: "started the tunnel {it}",
  tunnel_stopped: "stopped the tunnel {it}",
  tunnel_shards_set: "set the number of objects of the tunnel {it}",
  connection_ended: "disconnected an agent of the tunnel {tunnelId}",
  tunnel_password_set: "set a password for the tunnel {it}",
  tunnel_password_removed: "removed the password of the tunnel {it}",
  tunnel_edge_auth_set: "required visitors of the tunnel {it} to sign in",
  tunnel_edge_auth_removed: "stopped requiring visitors of the tunnel {it} to sign in",
  tunnel_policy_set: "set the traffic policy of the tunnel {it}",
  tunnel_policy_removed: "removed the traffic policy of the tunnel {it}",
  visitor_token_minted: "minted a visitor's token for {subject} at the tunnel {it}",
  tunnel_inspector_set: "changed the capture settings of the tunnel {it}",
  tunnel_ip_allowlist_set: "limited the visitors of the tunnel {it} to some addresses",
  tunnel_ip_allowlist_removed: "admitted visitors of the tunnel {it} from every address",
  tunnel_maintenance_started: "started the maintenance of the tunnel {it}",
  tunnel_maintenance_ended: "ended the maintenance of the tunnel {it}",
  tunnel_captures_cleared: "deleted the captured requests of the tunnel {it}",
  tunnel_request_replayed: "replayed a request of the tunnel {it}",
  domain_claimed: "added the domain {it}",
  domain_verified: "verified the domain {it}",
  domain_proof_missing: "did not find the record that verifies the domain {it}",
  domain_proof_found: "found the record that verifies the domain {it} again",
  domain_bound: "pointed the domain {it} to the tunnel {tunnelId}",
  domain_unbound: "pointed the domain {it} to no tunnel",
  domain_released: "removed the domain {it}",
  subdomain_reserved: "reserved the name {it}",
  subdomain_released: "released the name {it}",
  receiver_created: "created the webhook receiver {it}",
  receiver_rotated: "changed the secret of the webhook receiver {it}",
  receiver_deleted: "deleted the webhook receiver {it}",
  network_created: "created the network {it}",
  network_deleted: "deleted the network {it}",
  network_server_registered: "registered the server of the network {it}",
  network_server_removed: "removed the server of the network {it}",
  network_device_enrolled: "enrolled the device {it} in the network {networkId}",
  network_device_removed: "removed the device {it} from the network {networkId}",
};

/** All actions by the name that the API has for them. */
export const AUDIT_ACTION_NAMES = Object.keys(PREDICATES) as AuditAction[];

/** Names of things by their id, as far as they are known. */
export type ResourceNames = ReadonlyMap<string, string>;

/** A text of ours, or a value that a user or an agent has chosen. */
export type SentencePart = string | { value: string };

const FACTORS: Record<string, string> = {
  password: "the password",
  totp: "a code of the authenticator",
  recovery_code: "a recovery code",
  mailed_link: "a mailed link",
};

/** Keys of metadata whose value names the resource of the event. */
const NAME_KEYS = ["name", "label", "subdomain", "domain", "slug", "email"];

/** @param self the address of the user who reads it, for their own log. */
export function describeEvent(
  event: AuditEvent,
  names: ResourceNames,
  self: string | null = null,
): SentencePart[] {
  const actor = event.userEmail !== null && event.userEmail === self ? "You" : getActor(event);
  // Captured: the texts at even positions are ours, the others are names of values.
  const parts = PREDICATES[event.action].split(/\{(\w+)\}/);
  const predicate = parts.map((part, index) =>
    index % 2 === 0 ? part : { value: getValue(event, part, names) },
  );
  return [actor, " ", ...predicate, ...getDevice(event)].filter((part) => part !== "");
}

/** The browser and system of a sign-in. */
function getDevice({ action, metadata }: AuditEvent): SentencePart[] {
  const { deviceName } = metadata;
  const isNamed = action === "session_created" && isText(deviceName);
  return isNamed ? [" with ", { value: toText(deviceName) }] : [];
}

/** As one text, for exports. */
export function formatEvent(event: AuditEvent, names: ResourceNames): string {
  return describeEvent(event, names)
    .map((part) => (typeof part === "string" ? part : part.value))
    .join("");
}

/** `Token created`. */
export function formatAction(action: AuditAction): string {
  const text = action.replaceAll("_", " ").replace("mfa", "two-factor authentication");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Without an address the service itself did it: a job, or an event of another service. */
function getActor({ userEmail, ipAddress }: AuditEvent): SentencePart {
  if (userEmail !== null) return { value: userEmail };
  return ipAddress === null ? "The service" : "A person who was not signed in";
}

function getValue(event: AuditEvent, key: string, names: ResourceNames): string {
  const { metadata, resourceId, resourceType } = event;
  if (key === "it") {
    const name = NAME_KEYS.map((each) => metadata[each]).find((value) => isText(value));
    const unknown = resourceType === "user" ? formatFormerMember(resourceId) : resourceId;
    return toText(name ?? names.get(resourceId) ?? unknown);
  }
  const value = toText(metadata[key]);
  if (key === "factor") return FACTORS[value] ?? value;
  if (key === "status") return value.replaceAll("_", " ");
  return names.get(value) ?? value;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function toText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "unknown" : JSON.stringify(value);
}
