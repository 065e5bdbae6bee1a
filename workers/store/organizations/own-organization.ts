import type { Role } from "../locks.ts";
import type { OrganizationRow } from "../tables/organizations.ts";

/** An organization as one of its members sees it. */
export type OrganizationWithRole = OrganizationRow & { role: Role };
