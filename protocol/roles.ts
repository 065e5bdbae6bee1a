/** The roles of an organization's members. This file imports no library, because browser pages import it too. */

/** From the fewest permissions to the most. */
export const ROLES = ["viewer", "member", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];
