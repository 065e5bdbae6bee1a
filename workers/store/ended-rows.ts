/**
 * Tunnels and tokens that have ended are deleted by the scheduled job, as late as the audit events that name them. Until
 * then, lists and sums of past months can show them.
 */
import { and, eq, inArray, isNotNull, lt, notExists, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { AUDIT_RETENTION_MS } from "../limits.ts";
import { ago } from "./clock.ts";
import type { Database } from "./database.ts";
import { domains } from "./tables/domains.ts";
import { tokens } from "./tables/tokens.ts";
import { hostnames, tunnels } from "./tables/tunnels.ts";

/** Rows that one statement deletes. */
export const ENDED_ROWS_DELETE_BATCH = 1_000;

/** Deletes a batch. @returns how many; after a full batch there may be more. */
export async function deleteEndedTunnels({ query }: Database): Promise<number> {
  const endedAt = sql`coalesce(${tunnels.deletedAt}, ${tunnels.expiresAt})`;
  const old = query
    .select({ id: tunnels.id })
    .from(tunnels)
    .where(
      and(
        or(isNotNull(tunnels.deletedAt), eq(tunnels.status, "expired")),
        lt(endedAt, ago(AUDIT_RETENTION_MS)),
        notExists(query.select().from(hostnames).where(eq(hostnames.tunnelId, tunnels.id))),
        notExists(query.select().from(domains).where(eq(domains.boundTunnelId, tunnels.id))),
      ),
    )
    .orderBy(endedAt)
    .limit(ENDED_ROWS_DELETE_BATCH);
  const { rowCount } = await query.delete(tunnels).where(inArray(tunnels.id, old));
  return rowCount;
}

/**
 * Deletes a batch of tokens, and what was spent with them. A master key stays as long as a token that it minted, and a
 * token as long as a tunnel that its agent served last. @returns how many; after a full batch there may be more.
 */
export async function deleteEndedTokens({ query }: Database): Promise<number> {
  const endedAt = sql`least(${tokens.revokedAt}, ${tokens.expiresAt})`;
  const minted = alias(tokens, "minted");
  const old = query
    .select({ id: tokens.id })
    .from(tokens)
    .where(
      and(
        lt(endedAt, ago(AUDIT_RETENTION_MS)),
        notExists(query.select().from(minted).where(eq(minted.mintedByMasterId, tokens.id))),
        notExists(query.select().from(tunnels).where(eq(tunnels.connectedTokenId, tokens.id))),
      ),
    )
    .orderBy(endedAt)
    .limit(ENDED_ROWS_DELETE_BATCH);
  const { rowCount } = await query.delete(tokens).where(inArray(tokens.id, old));
  return rowCount;
}
