/** Sessions: one for each sign-in, alive until it is revoked or its refresh secret is no longer renewed. */
import { and, asc, desc, eq, isNotNull, lt, ne, sql } from "drizzle-orm";
import { LIST_MAX_ROWS } from "../../../protocol/limits.ts";
import { REFRESH_TOKEN_MS, SESSION_SEEN_MS } from "../../limits.ts";
import type { UserActor } from "../audit.ts";
import { prepared, type Change, type Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { isAlive } from "./live-sessions.ts";
import { insertOrganization, type OrganizationTerms } from "../organizations/organizations.ts";
import { users } from "../tables/accounts.ts";
import { sessions } from "../tables/sessions.ts";
import { memberships, organizations } from "../tables/organizations.ts";
import { enqueueWatchingEnded } from "../inspector/watching.ts";

/** Two tabs that refresh at once are not a theft. */
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
};

/** Everything that a request needs to know of who makes it. */
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
  approvalStatus: (typeof organizations.$inferSelect)["approvalStatus"];
  trialEndsAt: Date | null;
  role: (typeof memberships.$inferSelect)["role"];
  mfaEnabled: boolean;
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

/** One query: the session lives, its user is still a member, and this is their role and plan. */
export async function findPrincipal(
  db: Database,
  claims: { sid: string; sub: string; org: string },
): Promise<Principal | null> {
  const [principal] = await find(db).execute({ ...claims });
  return principal ?? null;
}

/** For after the answer: within one minute only the first request of a session writes. */
export async function recordSessionUse(
  { query }: Database,
  { sessionId, ip }: { sessionId: string; ip: string },
): Promise<void> {
  const before = sql`now() - ${SESSION_SEEN_MS} * interval '1 millisecond'`;
  await query
    .update(sessions)
    .set({ lastSeenAt: sql`now()`, ip })
    .where(and(eq(sessions.id, sessionId), lt(sessions.lastSeenAt, before)));
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

/** Those that are alive, newest first. */
export function listSessions(db: Database, userId: string): Promise<SessionRow[]> {
  return list(db).execute({ userId });
}

export interface NewSession {
  id: string;
  userId: string;
  refreshHash: string;
  device: string;
  ip: string;
}

export type SecondFactor = "totp" | "recovery_code";

/**
 * Acts for the organization that the user has been a member of for longest.
 *
 * @returns null when what the sign-in went by is no longer so: another password by now, or a second factor
 * that was not asked for. Changing either ends all sessions, and one that is on its way must not slip by.
 */
export function openSession(
  db: Database,
  session: NewSession,
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
    const orgId = await findOrCreateHome(change, session, terms);
    await tx
      .insert(sessions)
      .values({ ...session, orgId, expiresAt: new Date(Date.now() + REFRESH_TOKEN_MS) });
    audit({ orgId, userId: session.userId, ip: session.ip }, "session_created", session.id, {
      device: session.device,
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

/**
 * Whoever was removed from the last organization, or deleted it, is given one again. Its trial is what is
 * left of the account's own: nobody gets another by deleting an organization. The membership is locked,
 * so that whoever is removed this moment is not signed in to what is lost.
 */
async function findOrCreateHome(
  { tx, audit }: Change,
  { userId, ip }: { userId: string; ip: string },
  terms: OrganizationTerms,
): Promise<string> {
  const [user] = await tx
    .select({ email: users.email, createdAt: users.createdAt })
    .from(users)
    .where(eq(users.id, userId))
    .for("update");
  const [membership] = await tx
    .select({ orgId: memberships.orgId })
    .from(memberships)
    .where(eq(memberships.userId, userId))
    .orderBy(asc(memberships.createdAt), asc(memberships.orgId))
    .limit(1)
    .for("share");
  if (membership) return membership.orgId;
  const { email, createdAt } = user!;
  const trialEndsAt = terms.trialEndsAt && countFrom(terms.trialEndsAt, createdAt);
  const orgId = await insertOrganization(tx, { userId, email, terms: { ...terms, trialEndsAt } });
  audit({ orgId, userId, ip }, "organization_created", orgId);
  return orgId;
}

/** An end that is counted from now, counted from an earlier moment. */
function countFrom(end: Date, then: Date): Date {
  return new Date(then.getTime() + (end.getTime() - Date.now()));
}

export interface Renewal {
  /** Of the refresh secret that is good now: for the second of two, the first's. */
  refreshHash: string;
  userId: string;
  orgId: string;
  role: Principal["role"];
}

/**
 * Replaces a session's refresh secret by its successor. The update decides between two that come at once:
 * the second finds the first's successor in place and, within the grace, is given the same one.
 *
 * @returns null when the session is over. A secret that was replaced longer ago is a stolen one: then
 * nobody keeps the session.
 */
export function renewSession(
  db: Database,
  {
    sessionId,
    hash,
    nextHash,
    ip,
    terms,
  }: {
    sessionId: string;
    hash: string;
    nextHash: string;
    ip: string;
    terms: OrganizationTerms;
  },
): Promise<Renewal | null> {
  return db.transaction(async (change) => {
    const { tx, audit } = change;
    const grace = sql`${REFRESH_GRACE_MS} * interval '1 millisecond'`;
    // The account's row is locked before the session's, as by whoever ends all of its sessions.
    const [session] = await tx
      .select({
        userId: sessions.userId,
        orgId: sessions.orgId,
        refreshHash: sessions.refreshHash,
        previousRefreshHash: sessions.previousRefreshHash,
        rotatedJustNow: sql<boolean>`${sessions.rotatedAt} > now() - ${grace}`,
      })
      .from(users)
      .innerJoin(sessions, eq(sessions.userId, users.id))
      .where(and(eq(sessions.id, sessionId), isAlive()))
      .for("update");
    if (!session) return null;
    const { userId, orgId } = session;
    const now = sql`now()`;

    if (session.refreshHash === hash) {
      await tx
        .update(sessions)
        .set({
          refreshHash: nextHash,
          previousRefreshHash: hash,
          rotatedAt: now,
          lastSeenAt: now,
          ip,
          expiresAt: sql`now() + ${REFRESH_TOKEN_MS} * interval '1 millisecond'`,
        })
        .where(eq(sessions.id, sessionId));
    } else if (session.previousRefreshHash !== hash || !session.rotatedJustNow) {
      await tx.update(sessions).set({ revokedAt: now }).where(eq(sessions.id, sessionId));
      await enqueueWatchingEnded(change, userId, [sessionId]);
      audit({ orgId, userId, ip }, "session_reuse_detected", sessionId);
      return null;
    }

    const role = await findRole(tx, userId, orgId);
    const refreshHash = session.refreshHash === hash ? nextHash : session.refreshHash;
    if (role) return { refreshHash, userId, orgId, role };
    // No longer a member there: the session goes on where the user still is one.
    const home = await findOrCreateHome(change, { userId, ip }, terms);
    await tx.update(sessions).set({ orgId: home }).where(eq(sessions.id, sessionId));
    const homeRole = await findRole(tx, userId, home);
    return { refreshHash, userId, orgId: home, role: homeRole! };
  });
}

async function findRole(
  tx: Transaction,
  userId: string,
  orgId: string,
): Promise<Principal["role"] | null> {
  const [membership] = await tx
    .select({ role: memberships.role })
    .from(memberships)
    .where(and(eq(memberships.userId, userId), eq(memberships.orgId, orgId)));
  return membership?.role ?? null;
}

/** One of the actor's own; of anybody else's it is the same as if there were none. */
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

/** Every session of the actor's, or every other one: whoever else got in before is out. */
export async function revokeSessions(
  change: Change,
  actor: UserActor,
  { except }: { except?: string } = {},
): Promise<void> {
  const { tx, audit } = change;
  const rows = await tx
    .update(sessions)
    .set({ revokedAt: sql`now()` })
    .where(
      and(
        eq(sessions.userId, actor.userId),
        isAlive(),
        except === undefined ? undefined : ne(sessions.id, except),
      ),
    )
    .returning({ id: sessions.id });
  for (const { id } of rows) {
    audit(actor, "session_revoked", id);
  }
  const ended = rows.map(({ id }) => id);
  await enqueueWatchingEnded(change, actor.userId, ended);
}

export async function deleteDeadSessions(db: Database, before: Date): Promise<void> {
  await db.query.delete(sessions).where(lt(sessions.expiresAt, before));
}
