/** Capability tokens' rows. */
import { and, desc, eq, getTableColumns, isNotNull, isNull, sql } from "drizzle-orm";
import type { Actor } from "./audit.ts";
import { prepared, type Change, type Database } from "./client.ts";
import { isOnPage, pageValues, type Page } from "./page.ts";
import { tokens } from "./tables/credentials.ts";
import { projects, tunnels } from "./tables/routing.ts";

export type TokenRow = typeof tokens.$inferSelect & {
  /** The slug of the project it is confined to. */
  projectSlug: string | null;
};

export interface NewToken {
  nonce: string;
  kind: "agent";
  name: string;
  allowedSubdomains: string[];
  bandwidthLimitMbps: number;
  tunnelQuota: number;
  issuedAt: Date;
  expiresAt: Date;
}

const COLUMNS = { ...getTableColumns(tokens), projectSlug: projects.slug };

const list = prepared((read) =>
  read
    .select(COLUMNS)
    .from(tokens)
    .leftJoin(projects, eq(projects.id, tokens.projectId))
    .where(isOnPage(tokens, tokens.issuedAt))
    .orderBy(desc(tokens.issuedAt), desc(tokens.id))
    .limit(sql.placeholder("limit"))
    .prepare("list_tokens"),
);

/** Newest first. */
export function listTokens(db: Database, orgId: string, page: Page): Promise<TokenRow[]> {
  return list(db).execute(pageValues(orgId, page));
}

export async function insertToken(
  { tx, audit }: Change,
  actor: Actor & { orgId: string },
  token: NewToken,
): Promise<TokenRow> {
  const [row] = await tx
    .insert(tokens)
    .values({ ...token, orgId: actor.orgId, createdBy: actor.userId })
    .returning();
  audit({
    ...actor,
    action: "token_created",
    resourceType: "token",
    resourceId: row!.id,
    metadata: { name: token.name, nonce: token.nonce },
  });
  return { ...row!, projectSlug: null };
}

export function mintToken(
  db: Database,
  actor: Actor & { orgId: string },
  token: NewToken,
): Promise<TokenRow> {
  return db.change((change) => insertToken(change, actor, token));
}

/**
 * Revokes a token, and disconnects the agents that use it. Revoking it again changes nothing.
 * @returns "not_yours" when somebody else minted it and `mayRevokeOthers` is false.
 */
export function revokeToken(
  db: Database,
  actor: Actor & { orgId: string },
  { nonce, mayRevokeOthers }: { nonce: string; mayRevokeOthers: boolean },
): Promise<"revoked" | "not_found" | "not_yours"> {
  return db.change(async ({ tx, audit, tell }) => {
    const [token] = await tx
      .select({ id: tokens.id, createdBy: tokens.createdBy, revokedAt: tokens.revokedAt })
      .from(tokens)
      .where(and(eq(tokens.orgId, actor.orgId), eq(tokens.nonce, nonce)))
      .for("update");
    if (!token) return "not_found";
    if (token.createdBy !== actor.userId && !mayRevokeOthers) return "not_yours";
    if (token.revokedAt) return "revoked";

    await tx
      .update(tokens)
      .set({ revokedAt: sql`now()` })
      .where(eq(tokens.id, token.id));
    const served = await tx
      .select({ id: tunnels.id })
      .from(tunnels)
      .where(and(eq(tunnels.connectedTokenId, token.id), isNull(tunnels.deletedAt)));
    audit({
      ...actor,
      action: "token_revoked",
      resourceType: "token",
      resourceId: token.id,
      metadata: { nonce },
    });
    tell({
      kind: "token_revoked",
      payload: { tokenNonce: nonce, tunnelIds: served.map(({ id }) => id) },
    });
    return "revoked";
  });
}

export async function findToken({ read }: Database, id: string): Promise<TokenRow | null> {
  const [row] = await read
    .select(COLUMNS)
    .from(tokens)
    .leftJoin(projects, eq(projects.id, tokens.projectId))
    .where(eq(tokens.id, id));
  return row ?? null;
}

export async function isTokenRevoked({ read }: Database, nonce: string): Promise<boolean> {
  const rows = await read
    .select({ id: tokens.id })
    .from(tokens)
    .where(and(eq(tokens.nonce, nonce), isNotNull(tokens.revokedAt)));
  return rows.length > 0;
}
