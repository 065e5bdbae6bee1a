/**
 * A challenge is created after a correct password, and waits for the second factor. The rows also count an account's wrong
 * guesses, so they are kept for a while after they have ended: a new challenge does not reset the count.
 */
import { and, desc, eq, gt, isNull, lt, not, notInArray, or, sql } from "drizzle-orm";
import { MFA_GUESSES_WINDOW_MS, MFA_OPEN_CHALLENGES_MAX } from "../../limits.ts";
import { ago, fromNow } from "../clock.ts";
import type { Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { mfaChallenges, users } from "../tables/accounts.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

const MFA_CHALLENGE_MAX_MS = 5 * MINUTE_MS;
const MFA_CHALLENGE_MAX_ATTEMPTS = 5;
/** Wrong codes of an account over all challenges: another login with the password does not reset the count. */
const MFA_ACCOUNT_MAX_ATTEMPTS = 10;

/**
 * Beyond the maximum of open challenges, the oldest one ends. Its row stays when it has wrong guesses, because they count.
 *
 * @returns false when the password has changed since it was verified. A password reset ends all challenges, and the lock
 * prevents a new one from being created with the old password.
 */
export function insertChallenge(
  db: Database,
  account: { id: string; passwordHash: string | null },
  tokenHash: string,
): Promise<boolean> {
  return db.transaction(async ({ tx }) => {
    const userId = account.id;
    const [user] = await tx
      .select({ passwordHash: users.passwordHash })
      .from(users)
      .where(eq(users.id, userId))
      .for("no key update");
    if (user?.passwordHash !== account.passwordHash) return false;
    const isOpen = gt(mfaChallenges.expiresAt, sql`now()`);
    await tx
      .delete(mfaChallenges)
      .where(and(eq(mfaChallenges.userId, userId), eq(mfaChallenges.attempts, 0), not(isOpen)));
    const newest = tx
      .select({ tokenHash: mfaChallenges.tokenHash })
      .from(mfaChallenges)
      .where(and(eq(mfaChallenges.userId, userId), isOpen))
      .orderBy(desc(mfaChallenges.createdAt))
      .limit(MFA_OPEN_CHALLENGES_MAX - 1);
    await tx
      .update(mfaChallenges)
      .set({ expiresAt: sql`now()` })
      .where(
        and(eq(mfaChallenges.userId, userId), isOpen, notInArray(mfaChallenges.tokenHash, newest)),
      );
    const expiresAt = fromNow(MFA_CHALLENGE_MAX_MS);
    await tx.insert(mfaChallenges).values({ tokenHash, userId, expiresAt });
    return true;
  });
}

/** The challenge may have ended: `consumeAttempt` checks that. */
export async function findUserOfChallenge(
  tx: Transaction,
  tokenHash: string,
): Promise<string | null> {
  const [challenge] = await tx
    .select({ userId: mfaChallenges.userId })
    .from(mfaChallenges)
    .where(eq(mfaChallenges.tokenHash, tokenHash));
  return challenge?.userId ?? null;
}

/** The caller has locked the account's row, so that concurrent guesses are counted one after the other. */
export async function hasGuessesLeft(tx: Transaction, userId: string): Promise<boolean> {
  const [count] = await tx
    .select({ attempts: sql<number>`coalesce(sum(${mfaChallenges.attempts}), 0)::integer` })
    .from(mfaChallenges)
    .where(
      and(
        eq(mfaChallenges.userId, userId),
        isNull(mfaChallenges.consumedAt),
        gt(mfaChallenges.expiresAt, ago(MFA_GUESSES_WINDOW_MS)),
      ),
    );
  return count!.attempts < MFA_ACCOUNT_MAX_ATTEMPTS;
}

/** @returns false when the challenge has ended: then no guess may be checked. */
export async function consumeAttempt(tx: Transaction, tokenHash: string): Promise<boolean> {
  const spent = await tx
    .update(mfaChallenges)
    .set({ attempts: sql`${mfaChallenges.attempts} + 1` })
    .where(
      and(
        eq(mfaChallenges.tokenHash, tokenHash),
        isNull(mfaChallenges.consumedAt),
        gt(mfaChallenges.expiresAt, sql`now()`),
        lt(mfaChallenges.attempts, MFA_CHALLENGE_MAX_ATTEMPTS),
      ),
    )
    .returning({ attempts: mfaChallenges.attempts });
  return spent.length > 0;
}

/** Counts a wrong guess outside a challenge, with a row that has already expired and whose token does not exist. */
export async function recordWrongGuess(tx: Transaction, userId: string): Promise<void> {
  await tx.insert(mfaChallenges).values({
    tokenHash: `none ${crypto.randomUUID()}`,
    userId,
    attempts: 1,
    expiresAt: sql`now()`,
  });
}

/**
 * Ends a challenge after a right code and resets the account's count, so that occasional typing errors don't add up to a
 * lockout. Other challenges with wrong guesses end too, so that the reset gives none of them more than five attempts.
 */
export async function consumeChallenge(
  tx: Transaction,
  { tokenHash, userId }: { tokenHash: string; userId: string },
): Promise<void> {
  await tx
    .update(mfaChallenges)
    .set({ consumedAt: sql`now()` })
    .where(
      and(
        eq(mfaChallenges.userId, userId),
        isNull(mfaChallenges.consumedAt),
        or(eq(mfaChallenges.tokenHash, tokenHash), gt(mfaChallenges.attempts, 0)),
      ),
    );
}

/** Ends the user's challenges. The count of wrong guesses is not reset. */
export async function endChallenges(tx: Transaction, userId: string): Promise<void> {
  await tx
    .update(mfaChallenges)
    .set({ expiresAt: sql`now()` })
    .where(and(eq(mfaChallenges.userId, userId), gt(mfaChallenges.expiresAt, sql`now()`)));
}
