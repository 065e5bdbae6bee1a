import { ROLES, type Role } from "../../protocol/roles.ts";

/** The roles that a member may grant. The API enforces this; the page only hides choices that it would refuse. */
export function getGrantableRoles(role: Role): readonly Role[] {
  if (role === "owner") return ROLES;
  return role === "admin" ? ROLES.filter((other) => other !== "owner") : [];
}
