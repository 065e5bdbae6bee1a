/** Capability tokens' rows. */
import {
  and,
  desc,
  eq,
  getTableColumns,
  inArray,
  isNotNull,
  isNull,
  sql,
  type SQL,
} from "drizzle-orm";
import type { Actor } from "./audit.ts";
import { prepared, type Change, type Database } from "./client.ts";
import { isOnPage, pageValues, type Page } from "./page.ts";
import { holdsRole, type MemberActor } from "./standing.ts";
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

/** @returns "role_changed" when whoever asks may have lost the right to it; then nothing was done. */
export async function insertToken(
  { tx, audit }: Change,
  actor: MemberActor,
  token: NewToken,
): Promise<TokenRow | "role_changed"> {
  if (!(await holdsRole(tx, actor))) return "role_changed";
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
  actor: MemberActor,
  token: NewToken,
): Promise<TokenRow | "role_changed"> {
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
  return db.change(async (change) => {
    const [token] = await change.tx
      .select({ id: tokens.id, createdBy: tokens.createdBy, revokedAt: tokens.revokedAt })
      .from(tokens)
      .where(and(eq(tokens.orgId, actor.orgId), eq(tokens.nonce, nonce)))
      .for("update");
    if (!token) return "not_found";
    if (token.createdBy !== actor.userId && !mayRevokeOthers) return "not_yours";
    if (!token.revokedAt) await revokeTokens(change, actor, eq(tokens.id, token.id));
    return "revoked";
  });
}

/** Those of an organization that a condition picks; without one, all of them. */
export async function revokeTokens(
  { tx, audit, tell }: Change,
  actor: Actor & { orgId: string },
  which?: SQL,
): Promise<void> {
  const revoked = await tx
    .update(tokens)
    .set({ revokedAt: sql`now()` })
    .where(and(eq(tokens.orgId, actor.orgId), isNull(tokens.revokedAt), which))
    .returning({ id: tokens.id, nonce: tokens.nonce });
  if (revoked.length === 0) return;
  const ids = revoked.map(({ id }) => id);
  const served = await tx
    .select({ id: tunnels.id, tokenId: tunnels.connectedTokenId })
    .from(tunnels)
    .where(and(inArray(tunnels.connectedTokenId, ids), isNull(tunnels.deletedAt)));
  const tunnelsOf = Map.groupBy(served, ({ tokenId }) => tokenId);
  for (const { id, nonce } of revoked) {
    audit({
      ...actor,
      action: "token_revoked",
      resourceType: "token",
      resourceId: id,
      metadata: { nonce },
    });
    const tunnelIds = tunnelsOf.get(id)?.map((tunnel) => tunnel.id);
    if (tunnelIds) tell({ kind: "token_revoked", payload: { tokenNonce: nonce, tunnelIds } });
  }
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
