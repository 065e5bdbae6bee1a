/** The permissions of each role. A route requires a permission, never a role. */
import type { RoleRevocations } from "../store/organizations/members.ts";
import { ROLES, type Role } from "../../protocol/roles.ts";

/** The lowest role that has each permission; higher ones have it too. */
export const LOWEST_ROLE_BY_PERMISSION = {
  /** Manage one's own account and sessions. */
  "account:self": "viewer",
  "tunnels:read": "viewer",
  "tunnels:write": "member",
  /** Read captured requests, with their contents. */
  "inspector:read": "viewer",
  /** Replay and delete captured requests. */
  "inspector:write": "member",
  "tokens:read": "viewer",
  /** Mint tokens; revoke and rotate one's own. */
  "tokens:write": "member",
  "tokens:write-others": "admin",
  "budgets:write": "admin",
  "projects:read": "viewer",
  "projects:write": "member",
  /** Custom domains and reserved subdomains. */
  "domains:read": "viewer",
  "domains:write": "member",
  "connections:read": "viewer",
  /** End agents' connections. */
  "connections:write": "admin",
  /** Private networks and their devices. */
  "networks:read": "viewer",
  "networks:write": "member",
  "receivers:read": "viewer",
  /** Webhook receivers, and the cursor of their deliveries. */
  "receivers:write": "member",
  "events:read": "viewer",
  /** Metrics of tunnels. */
  "metrics:read": "viewer",
  /** The usage of tokens, and its cost. */
  "usage:read": "viewer",
  "orgs:read": "viewer",
  "orgs:write": "admin",
  "orgs:delete": "owner",
  "billing:manage": "owner",
  /** Invitations, and members other than oneself. */
  "members:write": "admin",
  /** Grant and withdraw the role of an owner, and remove owners. */
  "owners:write": "owner",
} as const satisfies Record<string, Role>;

export type Permission = keyof typeof LOWEST_ROLE_BY_PERMISSION;

export function hasPermission(role: Role, permission: Permission): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(LOWEST_ROLE_BY_PERMISSION[permission]);
}

/** The permission that a member needs to grant or withdraw a role, or to invite a person with it. */
export function getPermissionToGrant(role: Role): Permission {
  return role === "owner" ? "owners:write" : "members:write";
}

/** What a member loses with this role, which must be revoked. null: they are no longer a member. */
export function getRoleRevocations(role: Role | null): RoleRevocations {
  const lacks = (permission: Permission) => role === null || !hasPermission(role, permission);
  return {
    tokens: lacks("tokens:write"),
    tickets: lacks("networks:write"),
    invitationsTo: ROLES.filter((promised) => lacks(getPermissionToGrant(promised))),
  };
}
