import type { Role } from "../../../protocol/roles.ts";
import type { OrganizationRow } from "../tables/organizations.ts";

/** An organization, with the role of the member who reads it. */
export type OrganizationWithRole = OrganizationRow & { role: Role };
