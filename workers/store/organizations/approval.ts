/** Whether the operator has approved an organization (`REQUIRE_ORG_APPROVAL`). */
import type { organizations } from "../tables/organizations.ts";

export type ApprovalStatus = (typeof organizations.$inferSelect)["approvalStatus"];

/** Why an organization may not do what requires the approval. */
export type ApprovalRefusal = `organization_${Exclude<ApprovalStatus, "approved">}`;

/** @returns null for an approved organization. */
export function findApprovalRefusal(status: ApprovalStatus): ApprovalRefusal | null {
  return status === "approved" ? null : `organization_${status}`;
}
