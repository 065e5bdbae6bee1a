/**
 * The spending of tokens and their budgets. A token and the tokens that replaced it by rotation share a lineage: their
 * spending counts together, and the budget stays. The budget of a master key also covers the tokens that it minted.
 */
import { and, eq, inArray, isNotNull, or, sql, sum, type SQL } from "drizzle-orm";
import { alias, unionAll } from "drizzle-orm/pg-core";
import type { TokenUsage } from "../../../durable-objects/rpc.ts";
import { formatMonth } from "../../../durable-objects/tunnel/metrics/spending.ts";
import { usdCentsFor } from "../billing/plans.ts";
import type { Database } from "../database.ts";
import type { Reader } from "../transaction.ts";
import type { MemberActor } from "../locks.ts";
import { tokens } from "../tables/tokens.ts";
import { tokenUsage } from "../tables/metrics.ts";
import type { TokenTunnels } from "../outbox-messages.ts";
import { listServedTunnels, enqueueForServed } from "./tokens.ts";

const masters = alias(tokens, "masters");

/** @returns the spending of a month in whole cents, by lineage. A lineage that is missing has spent nothing. */
export async function findSpent(
  reader: Reader,
  lineageIds: string[],
  month = formatMonth(Date.now()),
): Promise<Map<string, number>> {
  const own = reader
    .select({ tokenId: tokens.id, lineageId: tokens.lineageId })
    .from(tokens)
    .where(inArray(tokens.lineageId, lineageIds));
  const minted = reader
    .select({ tokenId: tokens.id, lineageId: masters.lineageId })
    .from(masters)
    .innerJoin(tokens, eq(tokens.mintedByMasterId, masters.id))
    .where(inArray(masters.lineageId, lineageIds));
  const spenders = unionAll(own, minted).as("spenders");
  const rows = await reader
    .select({
      lineageId: spenders.lineageId,
      bytes: sum(tokenUsage.bytes).mapWith(Number),
      requests: sum(tokenUsage.requests).mapWith(Number),
    })
    .from(spenders)
    .innerJoin(
      tokenUsage,
      and(eq(tokenUsage.tokenId, spenders.tokenId), eq(tokenUsage.month, month)),
    )
    .groupBy(spenders.lineageId);
  return new Map(rows.map((row) => [row.lineageId, usdCentsFor(row)]));
}

/** @returns the tokens for which the condition holds and that have spent their budget, or their master key's. */
export async function findOverBudget(
  reader: Reader,
  condition: SQL | undefined,
): Promise<{ id: string; nonce: string }[]> {
  const capped = await reader
    .select({
      id: tokens.id,
      nonce: tokens.nonce,
      lineageId: tokens.lineageId,
      budget: tokens.monthlyBudgetUsdCents,
      masterLineageId: masters.lineageId,
      masterBudget: masters.monthlyBudgetUsdCents,
    })
    .from(tokens)
    .leftJoin(masters, eq(masters.id, tokens.mintedByMasterId))
    .where(
      and(
        condition,
        or(isNotNull(tokens.monthlyBudgetUsdCents), isNotNull(masters.monthlyBudgetUsdCents)),
      ),
    );
  if (capped.length === 0) return [];
  const lineageIds = capped.flatMap(({ lineageId, masterLineageId }) =>
    masterLineageId === null ? lineageId : [lineageId, masterLineageId],
  );
  const spent = await findSpent(reader, [...new Set(lineageIds)]);
  const isSpent = (lineageId: string | null, budget: number | null) =>
    lineageId !== null && budget !== null && (spent.get(lineageId) ?? 0) >= budget;
  return capped.filter(
    (token) =>
      isSpent(token.lineageId, token.budget) || isSpent(token.masterLineageId, token.masterBudget),
  );
}

/** Why a token's agents may not serve tunnels. @returns null when they may. */
export async function findTokenRefusal(
  { query }: Database,
  nonce: string,
): Promise<"revoked" | "over_budget" | null> {
  const isToken = eq(tokens.nonce, nonce);
  const [token] = await query.select({ revokedAt: tokens.revokedAt }).from(tokens).where(isToken);
  if (!token || token.revokedAt) return "revoked";
  return (await findOverBudget(query, isToken)).length > 0 ? "over_budget" : null;
}

/** Disconnects the agents of tokens that have already spent the new budget. null removes the budget. */
export function setBudget(
  db: Database,
  actor: MemberActor,
  { nonce, monthlyBudgetUsdCents }: { nonce: string; monthlyBudgetUsdCents: number | null },
): Promise<"set" | "not_found"> {
  return db.changeAs(actor, async (change) => {
    const { tx, audit } = change;
    const [token] = await tx
      .update(tokens)
      .set({ monthlyBudgetUsdCents })
      .where(and(eq(tokens.orgId, actor.orgId), eq(tokens.nonce, nonce)))
      .returning({ id: tokens.id });
    if (!token) return "not_found";
    audit(actor, "token_budget_set", token.id, { nonce, monthlyBudgetUsdCents });
    const isAffected = or(eq(tokens.id, token.id), eq(tokens.mintedByMasterId, token.id));
    await enqueueForServed(change, "token_over_budget", await findOverBudget(tx, isAffected));
    return "set";
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
  return listServedTunnels(query, await findOverBudget(query, inArray(tokens.nonce, nonces)));
}
