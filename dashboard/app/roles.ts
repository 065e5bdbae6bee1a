/** The rights of the signed-in user's role. The API enforces it: pages only hide what it would refuse. */
import { ROLES, type Role } from "../../protocol/roles.ts";
import { useMe } from "./session-state.ts";

/** Whether the user has this role or a higher one in the active organization. */
export function useHasRole(lowest: Role): boolean {
  return includesRole(useMe().active_org.role, lowest);
}

/** Whether a role is this one or a higher one. */
export function includesRole(role: Role, lowest: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(lowest);
}

/** With its article: `an admin`, `a member`. */
export function formatRole(role: string): string {
  return `${/^[ao]/.test(role) ? "an" : "a"} ${role}`;
}
