import type { Role } from "../locks.ts";
import type { OrganizationRow } from "../tables/organizations.ts";

/** An organization as one of its members sees it. */
export type OwnOrganization = OrganizationRow & { role: Role };
