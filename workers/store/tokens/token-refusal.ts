/** Whether a token may be used now. Its signature remains valid after a revocation, so its row decides. */
import { and, eq, isNull } from "drizzle-orm";
import {
  findApprovalRefusal,
  type ApprovalRefusal,
  type ApprovalStatus,
} from "../organizations/approval.ts";
import { organizations } from "../tables/organizations.ts";
import { tokens } from "../tables/tokens.ts";

export type TokenRefusal = "token_unknown" | "token_revoked" | ApprovalRefusal | "over_budget";

interface TokenState {
  revokedAt: Date | null;
  approvalStatus: ApprovalStatus;
}

/** @returns the token, or why it may not be used. Its budget is checked separately, by `isOverBudget`. */
export function checkUsable<Token extends TokenState>(
  token: Token | undefined,
): Token | Exclude<TokenRefusal, "over_budget"> {
  if (!token) return "token_unknown";
  if (token.revokedAt) return "token_revoked";
  return findApprovalRefusal(token.approvalStatus) ?? token;
}

/** The same as a condition on a token and its organization. */
export const isUsable = and(
  isNull(tokens.revokedAt),
  eq(organizations.approvalStatus, "approved"),
)!;
