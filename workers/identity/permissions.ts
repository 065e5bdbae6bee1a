/** Who may do what: the one table. A route names a permission, never a role. */
export const ROLES = ["viewer", "member", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];

/** The lowest role that has each permission; higher ones have it too. */
const LOWEST_ROLE = {
  /** What everybody does with their own account and session. */
  "account:self": "viewer",
  "tunnels:read": "viewer",
  "tunnels:write": "member",
  "tokens:read": "viewer",
  /** Mint, and revoke one's own. */
  "tokens:write": "member",
  "tokens:write-others": "admin",
  "events:read": "viewer",
  "orgs:read": "viewer",
  "orgs:write": "admin",
  "orgs:delete": "owner",
  /** Members other than oneself, and invitations. */
  "members:write": "admin",
  /** Make, unmake and remove owners. */
  "owners:write": "owner",
} as const satisfies Record<string, Role>;

export type Permission = keyof typeof LOWEST_ROLE;

export function hasPermission(role: Role, permission: Permission): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(LOWEST_ROLE[permission]);
}
