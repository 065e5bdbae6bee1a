/** Capability tokens' rows. */
import { and, eq, getTableColumns, gt, isNull, sql, type SQL } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { hasFeature, type PlanState } from "../billing/plans.ts";
import { requireRoom } from "../bounds.ts";
import { isAmong } from "../chunks.ts";
import { ago } from "../clock.ts";
import type { OrganizationActor } from "../audit.ts";
import { prepared, type Database, type UnitOfWork } from "../database.ts";
import type { Reader, Transaction } from "../transaction.ts";
import type { TokenTunnels } from "../object-messages.ts";
import { revokeTicketsOfTokens } from "../networks/ticket-revocations.ts";
import { revokeClients } from "./client-revocations.ts";
import { preparedList, type Page } from "../page.ts";
import { lockCaller, lockPlanAndRole, type MemberActor } from "../locks.ts";
import { tokens } from "../tables/tokens.ts";
import { organizations, projects } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import { HOUR_MS } from "../../../shared/time.ts";

export type TokenRow = typeof tokens.$inferSelect & {
  /** The slug of the project that the token is restricted to. */
  projectSlug: string | null;
};

export interface NewToken {
  nonce: string;
  kind: TokenRow["kind"];
  name: string;
  allowedSubdomains: string[];
  bandwidthLimitMbps: number;
  tunnelQuota: number;
  issuedAt: Date;
  expiresAt: Date;
}

/** Fields that a token takes from its project, its master key or the token that it replaces. */
type InheritedFields = Partial<
  Pick<
    TokenRow,
    "projectId" | "projectSlug" | "mintedByMasterId" | "lineageId" | "monthlyBudgetUsdCents"
  >
>;

export const masters = alias(tokens, "masters");

const COLUMNS = { ...getTableColumns(tokens), projectSlug: projects.slug };

const list = preparedList(
  "list_tokens",
  { scope: tokens.orgId, timestamp: tokens.issuedAt, id: tokens.id },
  (query, isOnPage) =>
    query
      .select(COLUMNS)
      .from(tokens)
      .leftJoin(projects, eq(projects.id, tokens.projectId))
      .where(isOnPage),
);

/** Newest first. */
export function listTokens(db: Database, orgId: string, page: Page): Promise<TokenRow[]> {
  return list(db, orgId, page);
}

/** @throws PermissionLostError when the actor's role has changed. */
export async function insertToken(
  change: UnitOfWork,
  actor: MemberActor,
  token: NewToken,
): Promise<TokenRow> {
  await lockCaller(change.tx, actor);
  return insertTokenRow(change, actor, token, actor);
}

const MAXIMUM_BY_KIND = { agent: "capability_tokens", master: "master_keys" } as const;

/** Where a new token comes from. */
interface TokenOrigin {
  /** The token is revoked when this user leaves. */
  userId: string | null;
  /** undefined: not minted by a session. */
  sessionId?: string | undefined;
  inherited?: InheritedFields;
  /** Further details of the audit event. */
  metadata?: Record<string, unknown>;
}

/** For callers who have locked the actor's role. @throws LimitReachedError */
export async function insertTokenRow(
  { tx, audit }: UnitOfWork,
  actor: OrganizationActor,
  token: NewToken,
  { userId: createdBy, sessionId, inherited = {}, metadata = {} }: TokenOrigin,
): Promise<TokenRow> {
  const { projectSlug = null, ...inheritedColumns } = inherited;
  const isSameKind = and(eq(tokens.orgId, actor.orgId), eq(tokens.kind, token.kind));
  await requireRoom(tx, actor.orgId, MAXIMUM_BY_KIND[token.kind], {
    table: tokens,
    condition: and(isSameKind, isNull(tokens.revokedAt), gt(tokens.expiresAt, sql`now()`)),
  });
  const [row] = await tx
    .insert(tokens)
    .values({ ...token, ...inheritedColumns, orgId: actor.orgId, createdBy, sessionId })
    .returning();
  audit(actor, "token_created", row!.id, { name: token.name, nonce: token.nonce, ...metadata });
  return { ...row!, projectSlug };
}

export function mintToken(db: Database, actor: MemberActor, token: NewToken): Promise<TokenRow> {
  return db.transaction((change) => insertToken(change, actor, token));
}

/** @param isHosted false on a self-hosted server, where every plan has master keys. */
export function mintMasterKey(
  db: Database,
  actor: MemberActor,
  token: NewToken,
  isHosted: boolean,
): Promise<TokenRow | "upgrade_required"> {
  return db.transaction(async (change) => {
    const plan = await lockPlanAndRole(change.tx, actor);
    if (isHosted && !hasFeature("master_keys", plan, new Date())) return "upgrade_required";
    return insertTokenRow(change, actor, token, actor);
  });
}

/** The claims of a presented token. */
export interface TokenClaims {
  orgId: string;
  nonce: string;
}

/** A token that has neither expired nor been revoked. */
type LiveToken = Pick<TokenRow, "id" | "nonce" | "orgId" | "expiresAt"> & PlanState;
export type MasterKey = LiveToken;
export type AgentToken = LiveToken & Pick<TokenRow, "createdBy" | "bandwidthLimitMbps">;

/** Which token, and whether the caller may revoke the tokens of other users. */
export interface TokenSelector {
  nonce: string;
  canRevokeOthers: boolean;
}

/**
 * Revokes a token, and disconnects the agents that use it. Revoking it again changes nothing.
 * @returns "not_yours" when another user minted it and the caller may not revoke it.
 */
export function revokeToken(
  db: Database,
  actor: OrganizationActor,
  selector: TokenSelector,
): Promise<"revoked" | "not_found" | "not_yours"> {
  return db.transaction(async (change) => {
    const token = await lockToken(change.tx, actor, selector);
    if (typeof token === "string") return token;
    if (!token.revokedAt) await revokeAll(change, actor, eq(tokens.id, token.id));
    return "revoked";
  });
}

/**
 * Replaces a token, which is revoked. Tokens that a master key has minted stay valid. Of several concurrent requests,
 * one succeeds.
 * @param renew returns the same token with a new nonce, for as long as the master key that minted it allows.
 */
export function rotateToken(
  db: Database,
  actor: MemberActor,
  selector: TokenSelector,
  renew: (old: TokenRow, masterKey: { expiresAt: Date } | undefined) => NewToken,
): Promise<TokenRow | "not_found" | "not_active" | "not_yours"> {
  return db.changeAs(actor, async (change) => {
    await lockProjectOfToken(change.tx, actor.orgId, selector.nonce);
    const masterKey = await lockMasterKeyOfToken(change.tx, actor.orgId, selector.nonce);
    const token = await lockToken(change.tx, actor, selector);
    if (typeof token === "string") return token;
    const { projectId, projectSlug, mintedByMasterId, lineageId, monthlyBudgetUsdCents } = token;
    // If the master key was rotated while this waited for it, the token belongs to the new one, which is not locked.
    const wasMasterRotated = mintedByMasterId !== (masterKey?.id ?? null);
    if (token.revokedAt || wasMasterRotated) return "not_active";
    const renewed = renew(token, masterKey);
    // Its master key has expired, so the new token would be expired too.
    if (renewed.expiresAt <= renewed.issuedAt) return "not_active";
    await endUses(change, actor.orgId, await revokeRows(change, actor, eq(tokens.id, token.id)));
    const project = { projectId, projectSlug };
    const inherited = { ...project, mintedByMasterId, lineageId, monthlyBudgetUsdCents };
    const origin = { ...actor, inherited, metadata: { replaces: token.nonce } };
    const row = await insertTokenRow(change, actor, renewed, origin);
    // The budget and a revocation of the new master key apply to the tokens that the old one minted.
    await change.tx
      .update(tokens)
      .set({ mintedByMasterId: row.id })
      .where(eq(tokens.mintedByMasterId, token.id));
    return row;
  });
}

/** A concurrent deletion of the token's project waits for the commit, and then also revokes the new token. */
async function lockProjectOfToken(tx: Transaction, orgId: string, nonce: string): Promise<void> {
  await tx
    .select({ id: projects.id })
    .from(projects)
    .innerJoin(tokens, eq(tokens.projectId, projects.id))
    .where(and(eq(tokens.orgId, orgId), eq(tokens.nonce, nonce)))
    .for("share", { of: projects });
}

/** A concurrent revocation of the master key waits for the commit, and then also revokes the new token. */
async function lockMasterKeyOfToken(
  tx: Transaction,
  orgId: string,
  nonce: string,
): Promise<{ id: string; expiresAt: Date } | undefined> {
  const [masterKey] = await tx
    .select({ id: masters.id, expiresAt: masters.expiresAt })
    .from(masters)
    .innerJoin(tokens, eq(tokens.mintedByMasterId, masters.id))
    .where(and(eq(tokens.orgId, orgId), eq(tokens.nonce, nonce)))
    .for("share", { of: masters });
  return masterKey;
}

async function lockToken(
  tx: Transaction,
  actor: OrganizationActor,
  { nonce, canRevokeOthers }: TokenSelector,
): Promise<TokenRow | "not_found" | "not_yours"> {
  const [token] = await tx
    .select(COLUMNS)
    .from(tokens)
    .leftJoin(projects, eq(projects.id, tokens.projectId))
    .where(and(eq(tokens.orgId, actor.orgId), eq(tokens.nonce, nonce)))
    .for("no key update", { of: tokens });
  if (!token) return "not_found";
  return token.createdBy === actor.userId || canRevokeOthers ? token : "not_yours";
}

/**
 * Tokens that expired longer ago than clocks can differ by stay as they are: the jobs of continuous integration leave
 * hundreds of them a day, and the bound of an organization's tokens does not count them.
 */
const isRevocable = gt(tokens.expiresAt, ago(HOUR_MS));

/**
 * Revokes the organization's tokens for which the condition holds, or all, and the tokens that master keys among them
 * minted: those that have not expired.
 */
export function revokeTokens(
  change: UnitOfWork,
  actor: OrganizationActor,
  condition?: SQL,
): Promise<void> {
  return revokeAll(change, actor, and(isRevocable, condition));
}

async function revokeAll(
  change: UnitOfWork,
  actor: OrganizationActor,
  condition: SQL | undefined,
): Promise<void> {
  const revoked = await revokeRows(change, actor, condition);
  const masterIds = revoked.filter(({ kind }) => kind === "master").map(({ id }) => id);
  // A second statement, because it sees tokens that were minted until the first one had locked the master key's row.
  if (masterIds.length > 0) {
    const minted = and(isAmong(tokens.mintedByMasterId, masterIds), isRevocable);
    revoked.push(...(await revokeRows(change, actor, minted)));
  }
  await endUses(change, actor.orgId, revoked);
}

/** Disconnects the agents and clients of revoked tokens from tunnels and relays, and the watchers that were authorized with them. */
async function endUses(
  change: UnitOfWork,
  orgId: string,
  revoked: { id: string; nonce: string }[],
): Promise<void> {
  if (revoked.length === 0) return;
  await enqueueForServedTunnels(change, "token_revoked", revoked);
  change.enqueue({ kind: "watching_ended", payload: { orgId, whose: "ended" } });
  const nonces = revoked.map(({ nonce }) => nonce);
  await revokeClients(change, orgId, nonces);
  await revokeTicketsOfTokens(change, orgId, nonces);
}

async function revokeRows(
  { tx, audit }: UnitOfWork,
  actor: OrganizationActor,
  condition: SQL | undefined,
) {
  const revoked = await tx
    .update(tokens)
    .set({ revokedAt: sql`now()` })
    .where(and(eq(tokens.orgId, actor.orgId), isNull(tokens.revokedAt), condition))
    .returning({ id: tokens.id, nonce: tokens.nonce, kind: tokens.kind, name: tokens.name });
  for (const { id, nonce, name } of revoked) {
    audit(actor, "token_revoked", id, { nonce, name });
  }
  return revoked;
}

/** @returns for each of the tokens that serve tunnels, those tunnels. */
export async function listServedTunnels(
  reader: Reader,
  credentials: { id: string; nonce: string }[],
): Promise<TokenTunnels[]> {
  if (credentials.length === 0) return [];
  const ids = credentials.map(({ id }) => id);
  const served = await reader
    .select({ id: tunnels.id, tokenId: tunnels.connectedTokenId })
    .from(tunnels)
    .where(and(isAmong(tunnels.connectedTokenId, ids), isNull(tunnels.deletedAt)));
  const tunnelsByToken = Map.groupBy(served, ({ tokenId }) => tokenId);
  return credentials.flatMap(({ id, nonce }) => {
    const tunnelIds = tunnelsByToken.get(id)?.map((tunnel) => tunnel.id);
    return tunnelIds ? { tokenNonce: nonce, tunnelIds } : [];
  });
}

export async function enqueueForServedTunnels(
  { tx, enqueue }: UnitOfWork,
  kind: "token_revoked" | "token_over_budget",
  credentials: { id: string; nonce: string }[],
): Promise<void> {
  for (const payload of await listServedTunnels(tx, credentials)) enqueue({ kind, payload });
}

export async function findToken({ query }: Database, id: string): Promise<TokenRow | null> {
  const [row] = await query
    .select(COLUMNS)
    .from(tokens)
    .leftJoin(projects, eq(projects.id, tokens.projectId))
    .where(eq(tokens.id, id));
  return row ?? null;
}

/** @returns null when the master key was revoked, has expired or does not exist. */
export function findMasterKey(db: Database, token: TokenClaims): Promise<MasterKey | null> {
  return findLiveToken(db, "master", token);
}

/** @returns null when the token was revoked, has expired or does not exist. */
export function findAgentToken(db: Database, token: TokenClaims): Promise<AgentToken | null> {
  return findLiveToken(db, "agent", token);
}

const findLive = prepared((query) =>
  query
    .select({
      id: tokens.id,
      nonce: tokens.nonce,
      orgId: tokens.orgId,
      createdBy: tokens.createdBy,
      bandwidthLimitMbps: tokens.bandwidthLimitMbps,
      expiresAt: tokens.expiresAt,
      plan: organizations.plan,
      trialEndsAt: organizations.trialEndsAt,
    })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .where(
      and(
        eq(tokens.orgId, sql.placeholder("orgId")),
        eq(tokens.nonce, sql.placeholder("nonce")),
        eq(tokens.kind, sql.placeholder("kind")),
        isNull(tokens.revokedAt),
        gt(tokens.expiresAt, sql`now()`),
      ),
    )
    .prepare("find_live_token"),
);

async function findLiveToken(
  db: Database,
  kind: TokenRow["kind"],
  { orgId, nonce }: TokenClaims,
): Promise<AgentToken | null> {
  const [row] = await findLive(db, { orgId, nonce, kind });
  return row ?? null;
}
