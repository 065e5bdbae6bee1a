/** The usage of tokens in a month. */
import { and, eq, sql, sum } from "drizzle-orm";
import type { Database } from "../database.ts";
import { preparedList, type Page } from "../page.ts";
import { tokens } from "../tables/tokens.ts";
import { tokenUsage } from "../tables/metrics.ts";
import type { Reader } from "../transaction.ts";

/** `bytes` counts both directions. */
export interface Usage {
  bytes: number;
  requests: number;
}

const month = sql`${sql.placeholder("month")}::text`;
const total = (column: "bytes" | "requests") =>
  sql`coalesce(${sum(tokenUsage[column])}, 0)`.mapWith(Number);

const list = preparedList(
  "list_token_usage",
  { scope: tokens.orgId, timestamp: tokens.issuedAt, id: tokens.id },
  (query, isOnPage) =>
    query
      .select({
        id: tokens.id,
        nonce: tokens.nonce,
        name: tokens.name,
        kind: tokens.kind,
        revokedAt: tokens.revokedAt,
        lineageId: tokens.lineageId,
        monthlyBudgetUsdCents: tokens.monthlyBudgetUsdCents,
        bytes: total("bytes"),
        requests: total("requests"),
      })
      .from(tokens)
      .leftJoin(tokenUsage, and(eq(tokenUsage.tokenId, tokens.id), eq(tokenUsage.month, month)))
      .where(isOnPage)
      .groupBy(tokens.id),
);

/** The usage of each token, newest first; unused tokens are included. */
export function listTokenUsage(db: Database, orgId: string, ofMonth: string, page: Page) {
  return list(db, orgId, page, { month: ofMonth });
}

/** The usage of all tokens of an organization together. */
export async function findUsage(
  { query }: { query: Reader },
  orgId: string,
  ofMonth: string,
): Promise<Usage> {
  const [usage] = await query
    .select({ bytes: total("bytes"), requests: total("requests") })
    .from(tokens)
    .innerJoin(tokenUsage, eq(tokenUsage.tokenId, tokens.id))
    .where(and(eq(tokens.orgId, orgId), eq(tokenUsage.month, ofMonth)));
  return usage!;
}
