/** Turning an account's second factor on and off, and passing it. Each locks the account's row first. */
import { and, eq, isNull, lt, ne, or } from "drizzle-orm";
import type { UserActor } from "../audit.ts";
import {
  consumeChallenge,
  recordWrongGuess,
  endChallenges,
  findUserOfChallenge,
  hasGuessesLeft,
  consumeAttempt,
} from "./challenges.ts";
import type { Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { replaceRecoveryCodes, consumeRecoveryCode } from "./recovery-codes.ts";
import { endRemoval } from "./mfa-removals.ts";
import { isSessionFresh, setSessionFresh } from "./fresh-sessions.ts";
import { revokeSessions, type SecondFactor } from "./sessions.ts";
import { users } from "../tables/accounts.ts";
import { sessions } from "../tables/sessions.ts";

type LockedAccount = Pick<typeof users.$inferSelect, "id" | "passwordHash" | "mfaSecret">;

/** A factor that the caller has checked. Whether a code has been used before is decided by the rows. */
export type FactorCheck =
  | { factor: "totp"; step: number | null }
  | { factor: "recovery_code"; codeHash: string }
  | { factor: "password"; matches: boolean };
type CheckFactor<Accepted extends FactorCheck> = (account: LockedAccount) => Promise<Accepted>;

async function lockAccount(tx: Transaction, userId: string): Promise<LockedAccount | null> {
  const [account] = await tx
    .select({ id: users.id, passwordHash: users.passwordHash, mfaSecret: users.mfaSecret })
    .from(users)
    .where(eq(users.id, userId))
    .for("update");
  return account ?? null;
}

/** @returns false when the code of this time step, or of a later one, was accepted before. */
async function consumeStep(tx: Transaction, userId: string, step: number): Promise<boolean> {
  const spent = await tx
    .update(users)
    .set({ mfaLastStep: step })
    .where(and(eq(users.id, userId), or(isNull(users.mfaLastStep), lt(users.mfaLastStep, step))))
    .returning({ id: users.id });
  return spent.length > 0;
}

async function consumeFactor(
  tx: Transaction,
  userId: string,
  proof: FactorCheck,
): Promise<boolean> {
  switch (proof.factor) {
    case "totp":
      return proof.step !== null && consumeStep(tx, userId, proof.step);
    case "recovery_code":
      return consumeRecoveryCode(tx, userId, proof.codeHash);
    case "password":
      return proof.matches;
  }
}

/**
 * The code that confirms the secret can't be used again. Other sessions end: a thief may have opened one with the password
 * alone.
 */
export function enableSecondFactor(
  db: Database,
  actor: UserActor,
  {
    encryptedSecret,
    step,
    codeHashes,
    sessionId,
    mail,
  }: {
    encryptedSecret: string;
    step: number;
    codeHashes: string[];
    sessionId: string;
    mail: OutboxMessage;
  },
): Promise<"enabled" | "enabled_already" | "code_spent" | "session_not_fresh"> {
  return db.transaction(async (change) => {
    const { tx } = change;
    const account = await lockAccount(tx, actor.userId);
    if (!account || account.mfaSecret !== null) return "enabled_already";
    if (!(await isSessionFresh(tx, sessionId))) return "session_not_fresh";
    if (!(await consumeStep(tx, actor.userId, step))) return "code_spent";
    await tx.update(users).set({ mfaSecret: encryptedSecret }).where(eq(users.id, actor.userId));
    await replaceRecoveryCodes(tx, actor.userId, codeHashes);
    change.audit(actor, "mfa_enabled", actor.userId);
    change.enqueue(mail);
    await revokeSessions(change, actor, ne(sessions.id, sessionId));
    return "enabled";
  });
}

/**
 * The account's count is checked and the guess is counted before the guess is checked, so that concurrent guesses over
 * several challenges don't exceed the limits.
 *
 * @returns null when it failed for any reason.
 */
export function passChallenge(
  db: Database,
  {
    tokenHash,
    ip,
    prove,
  }: {
    tokenHash: string;
    ip: string;
    prove: CheckFactor<Exclude<FactorCheck, { factor: "password" }>>;
  },
): Promise<{ account: LockedAccount; factor: SecondFactor } | null> {
  return db.transaction(async ({ tx, audit }) => {
    const userId = await findUserOfChallenge(tx, tokenHash);
    const account = userId === null ? null : await lockAccount(tx, userId);
    if (!account || !(await hasGuessesLeft(tx, account.id))) return null;
    if (!(await consumeAttempt(tx, tokenHash))) return null;
    const proof = await prove(account);
    if (!(await consumeFactor(tx, account.id, proof))) {
      const actor = { orgId: null, userId: account.id, ip };
      audit(actor, "mfa_failed", account.id, { factor: proof.factor });
      return null;
    }
    await consumeChallenge(tx, { tokenHash, userId: account.id });
    return { account, factor: proof.factor };
  });
}

/**
 * Makes the session fresh. The guesses have the limit of those at a challenge: concurrent ones wait for each other, and
 * are counted before they are answered.
 *
 * @returns whether the proof was right.
 */
export function reauthenticate(
  db: Database,
  actor: UserActor,
  {
    sessionId,
    prove,
  }: {
    sessionId: string;
    prove: CheckFactor<Exclude<FactorCheck, { factor: "recovery_code" }>>;
  },
): Promise<boolean> {
  return db.transaction(async ({ tx, audit }) => {
    const account = await lockAccount(tx, actor.userId);
    if (!account || !(await hasGuessesLeft(tx, account.id))) return false;
    const proof = await prove(account);
    if (!(await consumeFactor(tx, account.id, proof))) {
      await recordWrongGuess(tx, account.id);
      audit(actor, "reauthentication_failed", account.id, { factor: proof.factor });
      return false;
    }
    await setSessionFresh(tx, sessionId);
    audit(actor, "session_reauthenticated", sessionId, { factor: proof.factor });
    return true;
  });
}

/** The last time step is kept, so that codes can't be replayed if the same secret is turned on again. */
export function disableSecondFactor(
  db: Database,
  actor: UserActor,
  {
    prove,
    mail,
  }: {
    prove: CheckFactor<Exclude<FactorCheck, { factor: "totp" }>>;
    mail: OutboxMessage;
  },
): Promise<"disabled" | "not_enabled" | "refused"> {
  return db.transaction(async ({ tx, audit, enqueue }) => {
    const account = await lockAccount(tx, actor.userId);
    if (!account || account.mfaSecret === null) return "not_enabled";
    if (!(await hasGuessesLeft(tx, account.id))) return "refused";
    const proof = await prove(account);
    if (!(await consumeFactor(tx, account.id, proof))) {
      await recordWrongGuess(tx, account.id);
      audit(actor, "mfa_failed", account.id, { factor: proof.factor });
      return "refused";
    }
    await tx.update(users).set({ mfaSecret: null }).where(eq(users.id, account.id));
    await replaceRecoveryCodes(tx, account.id, []);
    await endChallenges(tx, account.id);
    await endRemoval(tx, account.id);
    audit(actor, "mfa_disabled", account.id, { factor: proof.factor });
    enqueue(mail);
    return "disabled";
  });
}
