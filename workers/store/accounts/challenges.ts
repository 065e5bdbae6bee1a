/**
 * What stands between the first factor and the second. The rows are also the count of an account's wrong
 * guesses, which is why they are kept for a while after their end: a new challenge is no new count.
 */
import { and, eq, gt, isNull, lt, or, sql } from "drizzle-orm";
import { MFA_ACCOUNT_WINDOW_MS } from "../../limits.ts";
import type { Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { mfaChallenges, users } from "../tables/accounts.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

const MFA_CHALLENGE_MAX_MS = 5 * MINUTE_MS;
const MFA_CHALLENGE_MAX_ATTEMPTS = 5;
/** Wrong codes of an account, whatever the challenge: a new password login starts no new count. */
const MFA_ACCOUNT_MAX_ATTEMPTS = 10;

/**
 * @returns false when the password that was checked is not the account's any more. The reset that replaced
 * it ended all challenges; the lock lets none be opened behind its back.
 */
export async function insertChallenge(
  { query }: Database,
  account: { id: string; passwordHash: string | null },
  tokenHash: string,
): Promise<boolean> {
  const expiresAt = new Date(Date.now() + MFA_CHALLENGE_MAX_MS);
  const { rowCount } = await query.execute(sql`
    insert into ${mfaChallenges} (token_hash, user_id, expires_at)
    select ${tokenHash}, id, ${expiresAt.toISOString()}::timestamptz from ${users}
    where id = ${account.id} and password_hash is not distinct from ${account.passwordHash}
    for share`);
  return rowCount === 1;
}

/** Whose challenge it is; whether it is still open shows when an attempt is spent. */
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

/** The account's row must be locked: guesses that arrive at once are counted one after the other. */
export async function hasGuessesLeft(tx: Transaction, userId: string): Promise<boolean> {
  const since = new Date(Date.now() - MFA_ACCOUNT_WINDOW_MS);
  const [count] = await tx
    .select({ attempts: sql<number>`coalesce(sum(${mfaChallenges.attempts}), 0)::integer` })
    .from(mfaChallenges)
    .where(
      and(
        eq(mfaChallenges.userId, userId),
        isNull(mfaChallenges.consumedAt),
        gt(mfaChallenges.expiresAt, since),
      ),
    );
  return count!.attempts < MFA_ACCOUNT_MAX_ATTEMPTS;
}

/** @returns false when the challenge is over: then no guess may be looked at. */
export async function spendAttempt(tx: Transaction, tokenHash: string): Promise<boolean> {
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

/** A wrong guess that no challenge asked for: a row that is over from the start, whose token nobody has. */
export async function countWrongGuess(tx: Transaction, userId: string): Promise<void> {
  await tx.insert(mfaChallenges).values({
    tokenHash: `none ${crypto.randomUUID()}`,
    userId,
    attempts: 1,
    expiresAt: new Date(),
  });
}

/**
 * A success ends its challenge and the account's count: whoever mistypes now and then must not be locked
 * out by the sum of it. Challenges that wrong guesses came for end with it, so that none has more than five.
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

/** Ends all that are open. The count of wrong guesses stays. */
export async function endChallenges(tx: Transaction, userId: string): Promise<void> {
  await tx
    .update(mfaChallenges)
    .set({ expiresAt: sql`now()` })
    .where(and(eq(mfaChallenges.userId, userId), gt(mfaChallenges.expiresAt, sql`now()`)));
}

/** @param before earlier than any whose attempts still count. */
export async function deleteDeadChallenges({ query }: Database, before: Date): Promise<void> {
  await query.delete(mfaChallenges).where(lt(mfaChallenges.expiresAt, before));
}
