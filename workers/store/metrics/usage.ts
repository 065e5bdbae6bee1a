/** The usage of tokens in a month. */
import { and, eq, sql, sum } from "drizzle-orm";
import type { Database } from "../database.ts";
import { preparedList, type Page } from "../page.ts";
import { tokens } from "../tables/tokens.ts";
import { tokenUsage } from "../tables/metrics.ts";
import type { Queries, Reader } from "../transaction.ts";

/** `bytes` counts both directions. */
interface Usage {
  bytes: number;
  requests: number;
}

const monthPlaceholder = sql`${sql.placeholder("month")}::text`;
const total = (column: "bytes" | "requests") =>
  sql`coalesce(${sum(tokenUsage[column])}, 0)`.mapWith(Number);

/** A subquery, because PostgreSQL runs it for the listed tokens alone. */
function sumForToken(query: Queries, column: "bytes" | "requests") {
  const isUsage = and(eq(tokenUsage.tokenId, tokens.id), eq(tokenUsage.month, monthPlaceholder));
  const selected = query
    .select({ total: total(column) })
    .from(tokenUsage)
    .where(isUsage);
  return sql`(${selected})`.mapWith(Number);
}

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
        bytes: sumForToken(query, "bytes"),
        requests: sumForToken(query, "requests"),
      })
      .from(tokens)
      .where(isOnPage),
);

/** The usage of each token, newest first; unused tokens are included. */
export function listTokenUsage(db: Database, orgId: string, month: string, page: Page) {
  return list(db, orgId, page, { month });
}

/** The usage of all tokens of an organization together. */
export async function findUsage(
  { query }: { query: Reader },
  orgId: string,
  month: string,
): Promise<Usage> {
  const [usage] = await query
    .select({ bytes: total("bytes"), requests: total("requests") })
    .from(tokenUsage)
    .where(and(eq(tokenUsage.orgId, orgId), eq(tokenUsage.month, month)));
  return usage!;
}
