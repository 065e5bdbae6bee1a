/** The row of the token that an agent presents, for the agent itself. */
import { and, eq, getTableColumns } from "drizzle-orm";
import type { Plan } from "../../../protocol/plans.ts";
import type { Database } from "../database.ts";
import { organizations, projects } from "../tables/organizations.ts";
import { tokens } from "../tables/tokens.ts";
import { findSpending, isOverBudget } from "./spending.ts";
import type { TokenClaims, TokenRow } from "./tokens.ts";

export interface PresentedTokenState {
  row: TokenRow;
  organization: { id: string; name: string; plan: Plan };
  isApproved: boolean;
  isOverBudget: boolean;
  spentUsdCents: number;
}

/** Reads the token's row: the token's signature remains valid after a revocation. */
export async function findPresentedToken(
  { query }: Database,
  { orgId, nonce }: TokenClaims,
): Promise<PresentedTokenState | "token_unknown" | "token_revoked"> {
  const [found] = await query
    .select({
      row: { ...getTableColumns(tokens), projectSlug: projects.slug },
      organization: { id: organizations.id, name: organizations.name, plan: organizations.plan },
      approvalStatus: organizations.approvalStatus,
    })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .leftJoin(projects, eq(projects.id, tokens.projectId))
    .where(and(eq(tokens.orgId, orgId), eq(tokens.nonce, nonce), eq(tokens.kind, "agent")));
  if (!found) return "token_unknown";
  const { row, organization, approvalStatus } = found;
  if (row.revokedAt) return "token_revoked";
  const [isOver, spent] = await Promise.all([
    isOverBudget(query, row.id),
    findSpending(query, [row.lineageId]),
  ]);
  return {
    row,
    organization,
    isApproved: approvalStatus === "approved",
    isOverBudget: isOver,
    spentUsdCents: spent.get(row.lineageId) ?? 0,
  };
}
