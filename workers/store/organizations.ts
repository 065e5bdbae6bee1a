/** Organizations' rows. */
import { DEFAULT_PROJECT_SLUG } from "../../protocol/names.ts";
import type { Plan } from "../config.ts";
import type { Transaction } from "./client.ts";
import { memberships, organizations } from "./tables/organizations.ts";
import { projects } from "./tables/routing.ts";

/** How a new organization starts. */
export interface OrganizationTerms {
  plan: Plan;
  approvalStatus: "approved" | "pending";
  trialEndsAt: Date | null;
}

/** The one that an account starts with: named after its address, with a default project and its owner. */
export async function insertOrganization(
  tx: Transaction,
  { userId, email, terms }: { userId: string; email: string; terms: OrganizationTerms },
): Promise<string> {
  const name = email.slice(0, email.indexOf("@"));
  const tail = crypto.randomUUID().slice(0, 8);
  const stem = name
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 40);
  const [org] = await tx
    .insert(organizations)
    .values({ name, slug: stem === "" ? tail : `${stem}-${tail}`, ...terms })
    .returning({ id: organizations.id });
  const orgId = org!.id;
  await tx.insert(memberships).values({ userId, orgId, role: "owner" });
  await tx
    .insert(projects)
    .values({ orgId, slug: DEFAULT_PROJECT_SLUG, name: "Default", isDefault: true });
  return orgId;
}
