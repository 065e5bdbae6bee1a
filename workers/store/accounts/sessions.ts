/** Sessions: one for each sign-in, until it is revoked or its refresh secret expires. */
import { findRole } from "../organizations/memberships.ts";
import type { ApprovalStatus } from "../organizations/approval.ts";
import { ago, fromNow } from "../clock.ts";
import { and, asc, desc, eq, isNotNull, lt, max, notInArray, sql, type SQL } from "drizzle-orm";
import { LIST_MAX_ROWS } from "../../../protocol/limits.ts";
import {
  REFRESH_TOKEN_MS,
  SESSION_LAST_SEEN_PRECISION_MS,
  SESSIONS_PER_USER_MAX,
} from "../../limits.ts";
import type { UserActor } from "../audit.ts";
import { prepared, type UnitOfWork, type Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { isAlive } from "./live-sessions.ts";
import { detectSignInNovelty } from "./sign-in-novelty.ts";
import {
  insertInitialOrganization,
  type OrganizationTerms,
} from "../organizations/organizations.ts";
import { users } from "../tables/accounts.ts";
import { sessions } from "../tables/sessions.ts";
import { memberships, organizations } from "../tables/organizations.ts";
import { enqueueWatchingEnded } from "../inspector/watching.ts";

/** The previous refresh secret is accepted for this long, because two tabs may refresh at once. */
const REFRESH_GRACE_MS = 10_000;

const PRINCIPAL = {
  userId: users.id,
  email: users.email,
  isSuperadmin: users.isSuperadmin,
  sessionId: sessions.id,
  lastSeenAt: sessions.lastSeenAt,
  orgId: organizations.id,
  orgName: organizations.name,
  orgSlug: organizations.slug,
  plan: organizations.plan,
  approvalStatus: organizations.approvalStatus,
  trialEndsAt: organizations.trialEndsAt,
  role: memberships.role,
  mfaEnabled: sql<boolean>`${isNotNull(users.mfaSecret)}`,
  hasPassword: sql<boolean>`${isNotNull(users.passwordHash)}`,
};

/** The signed-in user of a request, acting for an organization. */
export interface Principal {
  userId: string;
  email: string;
  isSuperadmin: boolean;
  sessionId: string;
  lastSeenAt: Date;
  orgId: string;
  orgName: string;
  orgSlug: string;
  plan: (typeof organizations.$inferSelect)["plan"];
  approvalStatus: ApprovalStatus;
  trialEndsAt: Date | null;
  role: (typeof memberships.$inferSelect)["role"];
  mfaEnabled: boolean;
  hasPassword: boolean;
}

const find = prepared((query) =>
  query
    .select(PRINCIPAL)
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.userId))
    .innerJoin(memberships, eq(memberships.userId, users.id))
    .innerJoin(organizations, eq(organizations.id, memberships.orgId))
    .where(
      and(
        eq(sessions.id, sql.placeholder("sid")),
        eq(sessions.userId, sql.placeholder("sub")),
        eq(memberships.orgId, sql.placeholder("org")),
        isAlive(),
      ),
    )
    .prepare("find_principal"),
);

/** @returns null when the session has ended or its user is no longer a member of the organization. */
export async function findPrincipal(
  db: Database,
  claims: { sid: string; sub: string; org: string },
): Promise<Principal | null> {
  const [principal] = await find(db, { ...claims });
  return principal ?? null;
}

/** Called after the response. Within a minute, only the first request of a session writes. */
export async function recordSessionUse(
  { query }: Database,
  { sessionId, ip }: { sessionId: string; ip: string },
): Promise<void> {
  await query
    .update(sessions)
    .set({ lastSeenAt: sql`now()`, ip })
    .where(
      and(eq(sessions.id, sessionId), lt(sessions.lastSeenAt, ago(SESSION_LAST_SEEN_PRECISION_MS))),
    );
}

export type SessionRow = Pick<
  typeof sessions.$inferSelect,
  "id" | "device" | "ip" | "createdAt" | "lastSeenAt"
>;

const list = prepared((query) =>
  query
    .select({
      id: sessions.id,
      device: sessions.device,
      ip: sessions.ip,
      createdAt: sessions.createdAt,
      lastSeenAt: sessions.lastSeenAt,
    })
    .from(sessions)
    .where(and(eq(sessions.userId, sql.placeholder("userId")), isAlive()))
    .orderBy(desc(sessions.createdAt), desc(sessions.id))
    .limit(LIST_MAX_ROWS)
    .prepare("list_sessions"),
);

/** The user's sessions, newest first. */
export function listSessions(db: Database, userId: string): Promise<SessionRow[]> {
  return list(db, { userId });
}

interface NewSession {
  id: string;
  userId: string;
  refreshHash: string;
  /** The User-Agent. */
  device: string;
  /** In words, without versions: `Firefox on Linux`. */
  deviceName: string;
  ip: string;
}

export type SecondFactor = "totp" | "recovery_code";

/**
 * The session acts for the organization that the user's last session acted for.
 *
 * @returns null when the password or the second factor was changed during the sign-in: such a change ends all sessions,
 * and must end the one that is being opened as well.
 */
export function openSession(
  db: Database,
  { deviceName, ...session }: NewSession,
  proof: { passwordHash: string | null; secondFactor: SecondFactor | undefined },
  terms: OrganizationTerms,
): Promise<Principal | null> {
  return db.transaction(async (change) => {
    const { tx, audit } = change;
    const [user] = await tx
      .select({ passwordHash: users.passwordHash, mfaSecret: users.mfaSecret })
      .from(users)
      .where(eq(users.id, session.userId))
      .for("update");
    if (user?.passwordHash !== proof.passwordHash) return null;
    if (user.mfaSecret !== null && proof.secondFactor === undefined) return null;
    const orgId = await findOrCreateDefaultOrganization(change, session, terms);
    await endLeastRecentSessions(change, { orgId, userId: session.userId, ip: session.ip });
    await tx.insert(sessions).values({ ...session, orgId, expiresAt: fromNow(REFRESH_TOKEN_MS) });
    audit({ orgId, userId: session.userId, ip: session.ip }, "session_created", session.id, {
      device: session.device,
      deviceName,
      ...(await detectSignInNovelty(tx, { ...session, deviceName })),
      secondFactor: proof.secondFactor,
    });
    const [principal] = await tx
      .select(PRINCIPAL)
      .from(sessions)
      .innerJoin(users, eq(users.id, sessions.userId))
      .innerJoin(memberships, and(eq(memberships.userId, users.id), eq(memberships.orgId, orgId)))
      .innerJoin(organizations, eq(organizations.id, memberships.orgId))
      .where(eq(sessions.id, session.id));
    return principal!;
  });
}

/** Leaves room for one more session. The caller has locked the user's row. */
async function endLeastRecentSessions(change: UnitOfWork, actor: UserActor): Promise<void> {
  const isOwn = and(eq(sessions.userId, actor.userId), isAlive());
  if ((await change.tx.$count(sessions, isOwn)) < SESSIONS_PER_USER_MAX) return;
  const recent = change.tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(isOwn)
    .orderBy(desc(sessions.lastSeenAt), desc(sessions.id))
    .limit(SESSIONS_PER_USER_MAX - 1);
  await revokeSessions(change, actor, notInArray(sessions.id, recent));
}

/**
 * Finds the organization that the user's sessions acted for last, or else the one that the user joined first, or creates one
 * for a user without any. The new one's trial ends when the account's first trial would have, so that deleting an
 * organization does not start another trial. The membership is locked, so that a user who is being removed is not signed in
 * to that organization.
 */
async function findOrCreateDefaultOrganization(
  { tx, audit }: UnitOfWork,
  { userId, ip }: { userId: string; ip: string },
  terms: OrganizationTerms,
): Promise<string> {
  const [user] = await tx
    .select({ email: users.email, createdAt: users.createdAt })
    .from(users)
    .where(eq(users.id, userId))
    .for("update");
  const lastSeenAt = tx
    .select({ lastSeenAt: max(sessions.lastSeenAt) })
    .from(sessions)
    .where(and(eq(sessions.userId, userId), eq(sessions.orgId, memberships.orgId)));
  const [membership] = await tx
    .select({ orgId: memberships.orgId })
    .from(memberships)
    .where(eq(memberships.userId, userId))
    .orderBy(
      sql`(${lastSeenAt}) desc nulls last`,
      asc(memberships.createdAt),
      asc(memberships.orgId),
    )
    .limit(1)
    .for("share");
  if (membership) return membership.orgId;
  const { email, createdAt } = user!;
  const trialEndsAt = terms.trialEndsAt && rebaseEnd(terms.trialEndsAt, createdAt);
  const orgId = await insertInitialOrganization(tx, {
    userId,
    email,
    terms: { ...terms, trialEndsAt },
  });
  audit({ orgId, userId, ip }, "organization_created", orgId);
  return orgId;
}

/** Moves an end that was computed from the current time, as if it had been computed at `start`. */
function rebaseEnd(end: Date, start: Date): Date {
  return new Date(start.getTime() + (end.getTime() - Date.now()));
}

interface SessionRefresh {
  /** The hash of the current refresh secret. The second of two concurrent renewals gets the first one's. */
  refreshHash: string;
  userId: string;
  orgId: string;
  role: Principal["role"];
}

/**
 * Replaces a session's refresh secret by its successor. Of two concurrent renewals, the second finds the first one's
 * successor and, within the grace period, gets the same one.
 *
 * @returns null when the session has ended. A secret that was replaced before the grace period has been stolen, from the
 * user or by the user of this request: the session ends for both. "another_user": the session is not that of the expected
 * user, and nothing has changed.
 */
export function refreshSession(
  db: Database,
  {
    sessionId,
    hash,
    nextHash,
    expectedUserId,
    ip,
    terms,
  }: {
    sessionId: string;
    hash: string;
    nextHash: string;
    /** undefined: the caller does not know whose session it renews. */
    expectedUserId: string | undefined;
    ip: string;
    terms: OrganizationTerms;
  },
): Promise<SessionRefresh | "another_user" | null> {
  return db.transaction(async (change) => {
    const { tx } = change;
    const session = await lockRefreshedSession(tx, sessionId);
    if (!session) return null;
    const { userId, orgId } = session;
    if (expectedUserId !== undefined && expectedUserId !== userId) return "another_user";
    const isCurrent = session.refreshHash === hash;
    if (isCurrent) {
      await rotate(tx, sessionId, { hash, nextHash, ip });
    } else if (session.previousRefreshHash !== hash || !session.isInGracePeriod) {
      await endStolenSession(change, sessionId, { orgId, userId, ip });
      return null;
    }
    const refreshHash = isCurrent ? nextHash : session.refreshHash;
    const role = await findRole(tx, orgId, userId);
    if (role) return { refreshHash, userId, orgId, role };
    // The user is no longer a member: the session switches to another of their organizations.
    const home = await findOrCreateDefaultOrganization(change, { userId, ip }, terms);
    await tx.update(sessions).set({ orgId: home }).where(eq(sessions.id, sessionId));
    const homeRole = await findRole(tx, home, userId);
    return { refreshHash, userId, orgId: home, role: homeRole! };
  });
}

/** The account's row is locked before the session's, in the same order as when all sessions are ended. */
async function lockRefreshedSession(tx: Transaction, sessionId: string) {
  const [session] = await tx
    .select({
      userId: sessions.userId,
      orgId: sessions.orgId,
      refreshHash: sessions.refreshHash,
      previousRefreshHash: sessions.previousRefreshHash,
      isInGracePeriod: sql<boolean>`${sessions.rotatedAt} > ${ago(REFRESH_GRACE_MS)}`,
    })
    .from(users)
    .innerJoin(sessions, eq(sessions.userId, users.id))
    .where(and(eq(sessions.id, sessionId), isAlive()))
    .for("update");
  return session;
}

async function rotate(
  tx: Transaction,
  sessionId: string,
  { hash, nextHash, ip }: { hash: string; nextHash: string; ip: string },
): Promise<void> {
  const now = sql`now()`;
  await tx
    .update(sessions)
    .set({
      refreshHash: nextHash,
      previousRefreshHash: hash,
      rotatedAt: now,
      lastSeenAt: now,
      ip,
      expiresAt: fromNow(REFRESH_TOKEN_MS),
    })
    .where(eq(sessions.id, sessionId));
}

async function endStolenSession(
  change: UnitOfWork,
  sessionId: string,
  actor: { orgId: string; userId: string; ip: string },
): Promise<void> {
  const revoked = { revokedAt: sql`now()` };
  await change.tx.update(sessions).set(revoked).where(eq(sessions.id, sessionId));
  await enqueueWatchingEnded(change, actor.userId, [sessionId]);
  change.audit(actor, "session_reuse_detected", sessionId);
}

/** Ends one of the actor's own sessions; another user's is not found. */
export function revokeSession(
  db: Database,
  actor: UserActor,
  sessionId: string,
): Promise<"revoked" | "not_found"> {
  return db.transaction(async (change) => {
    const { tx, audit } = change;
    const rows = await tx
      .update(sessions)
      .set({ revokedAt: sql`now()` })
      .where(and(eq(sessions.id, sessionId), eq(sessions.userId, actor.userId), isAlive()))
      .returning({ id: sessions.id });
    if (rows.length === 0) return "not_found";
    audit(actor, "session_revoked", sessionId);
    await enqueueWatchingEnded(change, actor.userId, [sessionId]);
    return "revoked";
  });
}

/** Ends the actor's sessions for which the condition holds, or all of them. */
export async function revokeSessions(
  change: UnitOfWork,
  actor: UserActor,
  condition?: SQL,
): Promise<void> {
  const { tx, audit } = change;
  const rows = await tx
    .update(sessions)
    .set({ revokedAt: sql`now()` })
    .where(and(eq(sessions.userId, actor.userId), isAlive(), condition))
    .returning({ id: sessions.id });
  for (const { id } of rows) {
    audit(actor, "session_revoked", id);
  }
  const ended = rows.map(({ id }) => id);
  await enqueueWatchingEnded(change, actor.userId, ended);
}
