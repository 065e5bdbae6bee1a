/**
 * Tunnels, tokens and projects that have ended are deleted by the scheduled job when the audit events that name them
 * are. Until then, lists of tokens and sums of past months can show them.
 */
import { and, eq, inArray, isNotNull, lt, or, sql, type SQL } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import { AUDIT_RETENTION_MS, EXPIRED_TUNNEL_LIST_MS } from "../limits.ts";
import { ago } from "./clock.ts";
import type { Database } from "./database.ts";
import { domains } from "./tables/domains.ts";
import { projects } from "./tables/organizations.ts";
import { tokens } from "./tables/tokens.ts";
import { hostnames, tunnels } from "./tables/tunnels.ts";

/** Rows that one statement deletes. */
export const ENDED_ROWS_DELETE_BATCH = 1_000;

/**
 * Marks a batch of tunnels that expired long ago as deleted, so that no list shows them: an organization of a plan whose
 * tunnels live for an hour would have thousands. Their objects have ended with them.
 * @returns how many; after a full batch there may be more.
 */
export async function unlistExpiredTunnels({ query }: Database): Promise<number> {
  const { id, status, deletedAt, expiresAt } = tunnels;
  const expired = query
    .select({ id })
    .from(tunnels)
    .where(
      and(
        // As in the condition of the index.
        sql`${deletedAt} is null and ${status} = 'expired'`,
        lt(expiresAt, ago(EXPIRED_TUNNEL_LIST_MS)),
      ),
    )
    .orderBy(expiresAt)
    .limit(ENDED_ROWS_DELETE_BATCH)
    .for("update", { skipLocked: true });
  // The end stays the same, from which the retention of the row is counted.
  const { rowCount } = await query
    .update(tunnels)
    .set({ deletedAt: sql`${expiresAt}` })
    .where(inArray(id, expired));
  return rowCount;
}

/** Deletes a batch. @returns how many; after a full batch there may be more. */
export function deleteEndedTunnels(db: Database): Promise<number> {
  const isEnded = or(isNotNull(tunnels.deletedAt), eq(tunnels.status, "expired"));
  const endedAt = sql`coalesce(${tunnels.deletedAt}, ${tunnels.expiresAt})`;
  return deleteOldest(db, tunnels, endedAt, [
    isEnded,
    isUnreferenced(db, hostnames.tunnelId, tunnels.id),
    isUnreferenced(db, domains.boundTunnelId, tunnels.id),
  ]);
}

/**
 * Deletes a batch of tokens, and what was spent with them. A master key stays as long as a token that it minted, and a
 * token as long as a tunnel that its agent served last. @returns how many; after a full batch there may be more.
 */
export function deleteEndedTokens(db: Database): Promise<number> {
  const endedAt = sql`least(${tokens.revokedAt}, ${tokens.expiresAt})`;
  return deleteOldest(db, tokens, endedAt, [
    isUnreferenced(db, alias(tokens, "minted").mintedByMasterId, tokens.id),
    isUnreferenced(db, tunnels.connectedTokenId, tokens.id),
  ]);
}

/** Deletes a batch of projects, after their tunnels and tokens. @returns how many; after a full batch there may be more. */
export function deleteEndedProjects(db: Database): Promise<number> {
  return deleteOldest(db, projects, sql`${projects.deletedAt}`, [
    isNotNull(projects.deletedAt),
    isUnreferenced(db, tunnels.projectId, projects.id),
    isUnreferenced(db, tokens.projectId, projects.id),
  ]);
}

async function deleteOldest(
  { query }: Database,
  table: typeof tunnels | typeof tokens | typeof projects,
  endedAt: SQL,
  conditions: (SQL | undefined)[],
): Promise<number> {
  const old = query
    .select({ id: table.id })
    .from(table)
    .where(and(lt(endedAt, ago(AUDIT_RETENTION_MS)), ...conditions))
    .orderBy(endedAt)
    .limit(ENDED_ROWS_DELETE_BATCH);
  const { rowCount } = await query.delete(table).where(inArray(table.id, old));
  return rowCount;
}

/** With `limit`, PostgreSQL looks up each row by an index. Without it, it could read all rows that refer to others. */
function isUnreferenced({ query }: Database, column: PgColumn, id: PgColumn): SQL {
  const reference = query.select({ id: column }).from(column.table).where(eq(column, id)).limit(1);
  return sql`(${reference}) is null`;
}
