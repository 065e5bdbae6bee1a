/** Who may do what: the one table. A route names a permission, never a role. */
import type { Forfeit } from "../store/organizations/members.ts";
import { ROLES, type Role } from "../../protocol/roles.ts";

/** The lowest role that has each permission; higher ones have it too. */
const LOWEST_ROLE = {
  /** What everybody does with their own account and session. */
  "account:self": "viewer",
  "tunnels:read": "viewer",
  "tunnels:write": "member",
  /** Captured requests, with what is in them. */
  "inspector:read": "viewer",
  /** Send them again, and clear them. */
  "inspector:write": "member",
  "tokens:read": "viewer",
  /** Mint, and revoke and rotate one's own. */
  "tokens:write": "member",
  "tokens:write-others": "admin",
  "budgets:write": "admin",
  "projects:read": "viewer",
  "projects:write": "member",
  /** Custom domains, and reserved subdomains. */
  "domains:read": "viewer",
  "domains:write": "member",
  "connections:read": "viewer",
  /** End agents' connections. */
  "connections:write": "admin",
  /** Private networks and their devices. */
  "networks:read": "viewer",
  "networks:write": "member",
  "receivers:read": "viewer",
  /** Webhook receivers, and how far their deliveries are handled. */
  "receivers:write": "member",
  "events:read": "viewer",
  /** Of tunnels. */
  "metrics:read": "viewer",
  /** What tokens used, and what it costs. */
  "usage:read": "viewer",
  "orgs:read": "viewer",
  "orgs:write": "admin",
  "orgs:delete": "owner",
  "billing:manage": "owner",
  /** Members other than oneself, and invitations. */
  "members:write": "admin",
  /** Make, unmake and remove owners. */
  "owners:write": "owner",
} as const satisfies Record<string, Role>;

export type Permission = keyof typeof LOWEST_ROLE;
export const PERMISSIONS = Object.keys(LOWEST_ROLE) as Permission[];

export function hasPermission(role: Role, permission: Permission): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(LOWEST_ROLE[permission]);
}

/** Whoever gives somebody a role, takes it away or promises it by an invitation needs this. */
export function getPermissionToGrant(role: Role): Permission {
  return role === "owner" ? "owners:write" : "members:write";
}

/** What a person who has this role from now on loses of what they handed out. null: no role at all. */
export function getForfeit(role: Role | null): Forfeit {
  const lacks = (permission: Permission) => role === null || !hasPermission(role, permission);
  return {
    tokens: lacks("tokens:write"),
    invitationsTo: ROLES.filter((promised) => lacks(getPermissionToGrant(promised))),
  };
}
