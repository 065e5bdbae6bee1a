/**
 * Removes the second factor of a user who cannot pass it, because they lost it or because another person has set it up: a
 * mailed link removes it, after a delay in which it can be canceled.
 */
import { and, eq, gt, isNull, sql } from "drizzle-orm";
import { fromNow } from "../clock.ts";
import { endChallenges } from "./challenges.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { UserActor } from "../audit.ts";
import type { Transaction } from "../transaction.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { replaceRecoveryCodes } from "./recovery-codes.ts";
import { revokeSessions } from "./sessions.ts";
import { mfaRemovals, mfaChallenges, users } from "../tables/accounts.ts";
import { MFA_REMOVAL_DELAY_MS, MFA_REMOVAL_USABLE_MS } from "../../limits.ts";

/** The account of a challenge that can still be passed: its user has proved the first factor. */
export async function findAccountOfChallenge(
  { query }: Database,
  challengeHash: string,
): Promise<{ id: string; email: string } | null> {
  const [account] = await query
    .select({ id: users.id, email: users.email })
    .from(mfaChallenges)
    .innerJoin(users, eq(users.id, mfaChallenges.userId))
    .where(
      and(
        eq(mfaChallenges.tokenHash, challengeHash),
        isNull(mfaChallenges.consumedAt),
        gt(mfaChallenges.expiresAt, sql`now()`),
      ),
    );
  return account ?? null;
}

/**
 * Does nothing while an earlier request is pending, and for a day after any request: repeating it neither moves the time
 * nor sends further mails.
 */
export function requestRemoval(
  db: Database,
  actor: UserActor,
  { tokenHash, mail }: { tokenHash: string; mail: OutboxMessage },
): Promise<void> {
  return db.transaction(async ({ tx, audit, enqueue }) => {
    if (!(await lockEnabled(tx, actor.userId))) return;
    const request = {
      tokenHash,
      requestedAt: sql`now()`,
      usableAt: fromNow(MFA_REMOVAL_DELAY_MS),
      expiresAt: fromNow(MFA_REMOVAL_DELAY_MS + MFA_REMOVAL_USABLE_MS),
      endedAt: null,
    };
    const inserted = await tx
      .insert(mfaRemovals)
      .values({ userId: actor.userId, ...request })
      .onConflictDoUpdate({
        target: mfaRemovals.userId,
        set: request,
        setWhere: sql`${mfaRemovals.usableAt} < now()
          and (${mfaRemovals.endedAt} is not null or ${mfaRemovals.expiresAt} < now())`,
      })
      .returning({ userId: mfaRemovals.userId });
    if (inserted.length === 0) return;
    enqueue(mail);
    audit(actor, "mfa_removal_requested", actor.userId);
  });
}

type RemovalOutcome = "removed" | "invalid_token" | { usableAt: Date };

/** Removes the second factor and its recovery codes, and ends all sessions: the person who set it up may have one. */
export function completeRemoval(
  db: Database,
  { tokenHash, mail, ip }: { tokenHash: string; mail: OutboxMessage; ip: string },
): Promise<RemovalOutcome> {
  return db.transaction(async (change) => {
    const { tx, audit, enqueue } = change;
    const removal = await lockRemoval(tx, tokenHash);
    if (!removal) return "invalid_token";
    const { userId, usableAt, isUsable } = removal;
    if (!isUsable) return { usableAt };
    await tx.update(users).set({ mfaSecret: null }).where(eq(users.id, userId));
    await replaceRecoveryCodes(tx, userId, []);
    await endChallenges(tx, userId);
    await endRemoval(tx, userId);
    const actor = { orgId: null, userId, ip };
    await revokeSessions(change, actor);
    audit(actor, "mfa_disabled", userId, { factor: "mailed_link" });
    enqueue(mail);
    return "removed";
  });
}

/** For the mail that reports the removal. */
export async function findRemovalEmail(
  { query }: Database,
  tokenHash: string,
): Promise<string | null> {
  const [user] = await query
    .select({ email: users.email })
    .from(mfaRemovals)
    .innerJoin(users, eq(users.id, mfaRemovals.userId))
    .where(and(eq(mfaRemovals.tokenHash, tokenHash), isPending()));
  return user?.email ?? null;
}

/** Cancels with the link of the mail. @returns whether there was a pending removal. */
export function cancelRemovalByLink(
  db: Database,
  { tokenHash, ip }: { tokenHash: string; ip: string },
): Promise<boolean> {
  return db.transaction(async (change) => {
    const removal = await lockRemoval(change.tx, tokenHash);
    return removal !== null && cancel(change, { orgId: null, userId: removal.userId, ip });
  });
}

/** Cancels as the signed-in user. @returns whether there was a pending removal. */
export function cancelRemoval(db: Database, actor: UserActor): Promise<boolean> {
  return db.transaction((change) => cancel(change, actor));
}

async function cancel(change: UnitOfWork, actor: UserActor): Promise<boolean> {
  if (!(await endRemoval(change.tx, actor.userId))) return false;
  change.audit(actor, "mfa_removal_canceled", actor.userId);
  return true;
}

/** @returns whether a removal was pending. */
export async function endRemoval(tx: Transaction, userId: string): Promise<boolean> {
  const ended = await tx
    .update(mfaRemovals)
    .set({ endedAt: sql`now()` })
    .where(and(eq(mfaRemovals.userId, userId), isPending()))
    .returning({ userId: mfaRemovals.userId });
  return ended.length > 0;
}

/** From when on a pending removal can be completed; null when none is pending. */
export async function findPendingRemoval(
  { query }: Database,
  userId: string,
): Promise<Date | null> {
  const [removal] = await query
    .select({ usableAt: mfaRemovals.usableAt })
    .from(mfaRemovals)
    .where(and(eq(mfaRemovals.userId, userId), isPending()));
  return removal?.usableAt ?? null;
}

function isPending() {
  return and(isNull(mfaRemovals.endedAt), gt(mfaRemovals.expiresAt, sql`now()`));
}

/** Locks the account before its removal, as every other change of the second factor does. */
async function lockRemoval(tx: Transaction, tokenHash: string) {
  const [owner] = await tx
    .select({ userId: users.id })
    .from(mfaRemovals)
    .innerJoin(users, eq(users.id, mfaRemovals.userId))
    .where(eq(mfaRemovals.tokenHash, tokenHash))
    .for("no key update", { of: users });
  if (!owner) return null;
  const [removal] = await tx
    .select({
      userId: mfaRemovals.userId,
      usableAt: mfaRemovals.usableAt,
      isUsable: sql<boolean>`${mfaRemovals.usableAt} <= now()`,
    })
    .from(mfaRemovals)
    .where(and(eq(mfaRemovals.tokenHash, tokenHash), isPending()));
  return removal ?? null;
}

async function lockEnabled(tx: Transaction, userId: string): Promise<boolean> {
  const [account] = await tx
    .select({ mfaSecret: users.mfaSecret })
    .from(users)
    .where(eq(users.id, userId))
    .for("no key update");
  return account !== undefined && account.mfaSecret !== null;
}
