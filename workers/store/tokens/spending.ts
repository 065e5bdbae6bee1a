/**
 * The spending of tokens and their budgets. A token and the tokens that replaced it by rotation share a lineage: their
 * spending counts together, and the budget stays. The budget of a master key also covers the tokens that it minted, and
 * the budget of an organization covers all of its tokens.
 */
import { and, eq, inArray, isNotNull, or, sql, sum, type SQL } from "drizzle-orm";
import { unionAll } from "drizzle-orm/pg-core";
import type { TokenUsage } from "../../../durable-objects/rpc.ts";
import { formatMonth } from "../../../durable-objects/tunnel/metrics/spending.ts";
import { computeUsdCents } from "../billing/plans.ts";
import { isAmong } from "../chunks.ts";
import type { Database } from "../database.ts";
import type { Reader } from "../transaction.ts";
import { lockOrganization, type MemberActor } from "../locks.ts";
import { findUsage } from "../metrics/usage.ts";
import { organizations } from "../tables/organizations.ts";
import { tokens } from "../tables/tokens.ts";
import { tokenUsage } from "../tables/metrics.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUnendedTunnelIn } from "../tunnels/undeleted-tunnels.ts";
import type { TokenTunnels } from "../object-messages.ts";
import { listServedTunnels, enqueueForServedTunnels, masters, type TokenClaims } from "./tokens.ts";

/** Whether a budget bounds the token: its own, its master key's or its organization's. */
export const hasBudget = or(
  isNotNull(tokens.monthlyBudgetUsdCents),
  isNotNull(masters.monthlyBudgetUsdCents),
  isNotNull(organizations.monthlyBudgetUsdCents),
)!;

/** @returns the spending of a month in whole cents, by lineage. A lineage that is missing has spent nothing. */
export async function findSpending(
  reader: Reader,
  lineageIds: string[],
  month = formatMonth(Date.now()),
): Promise<Map<string, number>> {
  const own = reader
    .select({ tokenId: tokens.id, lineageId: tokens.lineageId })
    .from(tokens)
    .where(isAmong(tokens.lineageId, lineageIds));
  const minted = reader
    .select({ tokenId: tokens.id, lineageId: masters.lineageId })
    .from(masters)
    .innerJoin(tokens, eq(tokens.mintedByMasterId, masters.id))
    // Saves a look-up for every other token.
    .where(and(isAmong(masters.lineageId, lineageIds), eq(masters.kind, "master")));
  const spenders = unionAll(own, minted).as("spenders");
  // Sums for each token, so that PostgreSQL reads the rows of these tokens alone.
  const used = reader
    .select({
      bytes: sum(tokenUsage.bytes).as("bytes"),
      requests: sum(tokenUsage.requests).as("requests"),
    })
    .from(tokenUsage)
    .where(and(eq(tokenUsage.tokenId, spenders.tokenId), eq(tokenUsage.month, month)))
    .as("used");
  const rows = await reader
    .select({
      lineageId: spenders.lineageId,
      bytes: sum(used.bytes).mapWith(Number),
      requests: sum(used.requests).mapWith(Number),
    })
    .from(spenders)
    .innerJoinLateral(used, isNotNull(used.bytes))
    .groupBy(spenders.lineageId);
  return new Map(rows.map((row) => [row.lineageId, computeUsdCents(row)]));
}

interface OverBudget {
  id: string;
  nonce: string;
  orgId: string;
  /** Whether the organization has spent its own budget: then none of its tokens may serve. */
  isOrganizationOver: boolean;
}

/**
 * @returns the tokens for which the condition holds and that have spent their budget, their master key's or their
 * organization's.
 */
async function findOverBudget(reader: Reader, condition: SQL | undefined): Promise<OverBudget[]> {
  const capped = await reader
    .select({
      id: tokens.id,
      nonce: tokens.nonce,
      lineageId: tokens.lineageId,
      budget: tokens.monthlyBudgetUsdCents,
      masterLineageId: masters.lineageId,
      masterBudget: masters.monthlyBudgetUsdCents,
      orgId: tokens.orgId,
      orgBudget: organizations.monthlyBudgetUsdCents,
    })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .leftJoin(masters, eq(masters.id, tokens.mintedByMasterId))
    .where(and(condition, hasBudget));
  if (capped.length === 0) return [];
  const isOverByOrg = new Map<string, boolean>();
  for (const { orgId, orgBudget } of capped) {
    if (orgBudget === null || isOverByOrg.has(orgId)) continue;
    const usage = await findUsage({ query: reader }, orgId, formatMonth(Date.now()));
    isOverByOrg.set(orgId, computeUsdCents(usage) >= orgBudget);
  }
  // Not of a master key without a budget, which may have minted tens of thousands of tokens.
  const lineageIds = capped.flatMap(({ lineageId, budget, masterLineageId, masterBudget }) => [
    ...(budget === null ? [] : [lineageId]),
    ...(masterLineageId === null || masterBudget === null ? [] : [masterLineageId]),
  ]);
  const spent = await findSpending(reader, [...new Set(lineageIds)]);
  const isSpent = (lineageId: string | null, budget: number | null) =>
    lineageId !== null && budget !== null && (spent.get(lineageId) ?? 0) >= budget;
  return capped.flatMap((token) => {
    const { id, nonce, orgId } = token;
    const isOrganizationOver = isOverByOrg.get(orgId) ?? false;
    const isOver =
      isOrganizationOver ||
      isSpent(token.lineageId, token.budget) ||
      isSpent(token.masterLineageId, token.masterBudget);
    return isOver ? { id, nonce, orgId, isOrganizationOver } : [];
  });
}

/** Whether the token's agents serve, or served last, a tunnel of the organization: only these can be disconnected. */
function isServing(reader: Reader, orgId: string): SQL {
  const served = reader
    .select({ id: tunnels.connectedTokenId })
    .from(tunnels)
    .where(isUnendedTunnelIn(orgId));
  return inArray(tokens.id, served);
}

/** Whether a token may no longer serve, by its own budget, its master key's or its organization's. */
export async function isOverBudget(reader: Reader, tokenId: string): Promise<boolean> {
  return (await findOverBudget(reader, eq(tokens.id, tokenId))).length > 0;
}

/** Why a token's agents may not serve tunnels. @returns null when they may. Its expiry is not checked. */
export async function findTokenRefusal(
  { query }: Database,
  { orgId, nonce }: TokenClaims,
): Promise<"token_unknown" | "token_revoked" | "over_budget" | null> {
  const [token] = await query
    .select({ id: tokens.id, revokedAt: tokens.revokedAt, hasBudget: sql<boolean>`${hasBudget}` })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .leftJoin(masters, eq(masters.id, tokens.mintedByMasterId))
    .where(and(eq(tokens.orgId, orgId), eq(tokens.nonce, nonce)));
  if (!token) return "token_unknown";
  if (token.revokedAt) return "token_revoked";
  return token.hasBudget && (await isOverBudget(query, token.id)) ? "over_budget" : null;
}

/**
 * Disconnects the agents of tokens that have already spent the new budget. null removes the budget.
 * @returns "not_active" for a revoked token: one that has replaced it by rotation would not get the budget.
 */
export function setBudget(
  db: Database,
  actor: MemberActor,
  { nonce, monthlyBudgetUsdCents }: { nonce: string; monthlyBudgetUsdCents: number | null },
): Promise<"set" | "not_found" | "not_active"> {
  return db.changeAs(actor, async (change) => {
    const { tx, audit } = change;
    const [token] = await tx
      .update(tokens)
      .set({ monthlyBudgetUsdCents })
      .where(and(eq(tokens.orgId, actor.orgId), eq(tokens.nonce, nonce)))
      .returning({ id: tokens.id, revokedAt: tokens.revokedAt });
    if (!token) return "not_found";
    if (token.revokedAt) return change.rollback("not_active");
    audit(actor, "token_budget_set", token.id, { nonce, monthlyBudgetUsdCents });
    const isAffected = or(eq(tokens.id, token.id), eq(tokens.mintedByMasterId, token.id));
    const over = await findOverBudget(tx, and(isServing(tx, actor.orgId), isAffected));
    await enqueueForServedTunnels(change, "token_over_budget", over);
    return "set";
  });
}

/** Disconnects the agents of all tokens if they have already spent the new budget. null removes the budget. */
export function setOrganizationBudget(
  db: Database,
  actor: MemberActor,
  monthlyBudgetUsdCents: number | null,
): Promise<void> {
  return db.transaction(async (change) => {
    const { tx, audit } = change;
    const { orgId } = actor;
    // A change of members locks the organization before the memberships too; another order could cause a deadlock.
    await lockOrganization(tx, actor);
    await tx
      .update(organizations)
      .set({ monthlyBudgetUsdCents })
      .where(eq(organizations.id, orgId));
    audit(actor, "organization_budget_set", orgId, { monthlyBudgetUsdCents });
    const over = await findOverBudget(tx, isServing(tx, orgId));
    await enqueueForServedTunnels(change, "token_over_budget", over);
  });
}

/**
 * Saves the spending that a tunnel reports. It consists of totals, so that a repeated or late report changes nothing.
 *
 * @returns the tunnels that are served with tokens over their budget.
 */
export async function recordSpending(
  { query }: Database,
  tunnelId: string,
  spending: TokenUsage[],
): Promise<TokenTunnels[]> {
  for (const { tokenNonce, month, bytes, requests } of spending) {
    const row = query
      .select({
        tokenId: tokens.id,
        orgId: tokens.orgId,
        month: sql<string>`${month}::text`.as("month"),
        tunnelId: sql<string>`${tunnelId}::uuid`.as("tunnel_id"),
        bytes: sql<number>`${bytes}::bigint`.as("bytes"),
        requests: sql<number>`${requests}::bigint`.as("requests"),
      })
      .from(tokens)
      .where(eq(tokens.nonce, tokenNonce));
    const newest = (column: "bytes" | "requests") =>
      sql`greatest(${tokenUsage[column]}, excluded.${sql.identifier(column)})`;
    await query
      .insert(tokenUsage)
      .select(row)
      .onConflictDoUpdate({
        target: [tokenUsage.tokenId, tokenUsage.month, tokenUsage.tunnelId],
        set: { bytes: newest("bytes"), requests: newest("requests") },
      });
  }
  const nonces = spending.map(({ tokenNonce }) => tokenNonce);
  const over = await findOverBudget(query, inArray(tokens.nonce, nonces));
  const orgId = over.find(({ isOrganizationOver }) => isOrganizationOver)?.orgId;
  if (orgId === undefined) return listServedTunnels(query, over);
  // Agents of other tokens are connected too, and a tunnel's reports are about one organization.
  return listServedTunnels(query, await findOverBudget(query, isServing(query, orgId)));
}
