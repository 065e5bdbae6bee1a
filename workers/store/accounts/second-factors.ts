/** An account's second factor: turned on, asked for, turned off. Each locks the account's row first. */
import { and, eq, isNull, lt, or } from "drizzle-orm";
import type { UserActor } from "../audit.ts";
import {
  consumeChallenge,
  countWrongGuess,
  endChallenges,
  findUserOfChallenge,
  hasGuessesLeft,
  spendAttempt,
} from "./challenges.ts";
import type { Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { replaceRecoveryCodes, spendRecoveryCode } from "./recovery-codes.ts";
import { revokeSessions, type SecondFactor } from "./sessions.ts";
import { users } from "../tables/accounts.ts";

type LockedAccount = Pick<typeof users.$inferSelect, "id" | "passwordHash" | "mfaSecret">;
type Person = UserActor;

/** What somebody showed, looked at. Whether a code is spent already is decided by the rows. */
export type Proof =
  | { factor: "totp"; step: number | null }
  | { factor: "recovery_code"; codeHash: string }
  | { factor: "password"; matches: boolean };
type Prove<Shown extends Proof> = (account: LockedAccount) => Promise<Shown>;

async function lockAccount(tx: Transaction, userId: string): Promise<LockedAccount | null> {
  const [account] = await tx
    .select({ id: users.id, passwordHash: users.passwordHash, mfaSecret: users.mfaSecret })
    .from(users)
    .where(eq(users.id, userId))
    .for("update");
  return account ?? null;
}

/** @returns false when its code, or a later one, was accepted before. */
async function spendStep(tx: Transaction, userId: string, step: number): Promise<boolean> {
  const spent = await tx
    .update(users)
    .set({ mfaLastStep: step })
    .where(and(eq(users.id, userId), or(isNull(users.mfaLastStep), lt(users.mfaLastStep, step))))
    .returning({ id: users.id });
  return spent.length > 0;
}

async function acceptProof(tx: Transaction, userId: string, proof: Proof): Promise<boolean> {
  switch (proof.factor) {
    case "totp":
      return proof.step !== null && spendStep(tx, userId, proof.step);
    case "recovery_code":
      return spendRecoveryCode(tx, userId, proof.codeHash);
    case "password":
      return proof.matches;
  }
}

/**
 * The code that confirms the secret is spent by it. Other sessions end: one that a thief opened with the
 * password alone must not outlive the second factor's beginning.
 */
export function enableSecondFactor(
  db: Database,
  actor: Person,
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
): Promise<"enabled" | "enabled_already" | "code_spent"> {
  return db.transaction(async (change) => {
    const { tx } = change;
    const account = await lockAccount(tx, actor.userId);
    if (!account || account.mfaSecret !== null) return "enabled_already";
    if (!(await spendStep(tx, actor.userId, step))) return "code_spent";
    await tx.update(users).set({ mfaSecret: encryptedSecret }).where(eq(users.id, actor.userId));
    await replaceRecoveryCodes(tx, actor.userId, codeHashes);
    change.audit(actor, "mfa_enabled", actor.userId);
    change.enqueue(mail);
    await revokeSessions(change, actor, { except: sessionId });
    return "enabled";
  });
}

/**
 * A guess is counted before it is looked at, and the account's count is asked first: however many arrive
 * at once, over however many challenges, no more are looked at than the limits say.
 *
 * @returns null when it failed, for whatever reason.
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
    prove: Prove<Exclude<Proof, { factor: "password" }>>;
  },
): Promise<{ account: LockedAccount; factor: SecondFactor } | null> {
  return db.transaction(async ({ tx, audit }) => {
    const userId = await findUserOfChallenge(tx, tokenHash);
    const account = userId === null ? null : await lockAccount(tx, userId);
    if (!account || !(await hasGuessesLeft(tx, account.id))) return null;
    if (!(await spendAttempt(tx, tokenHash))) return null;
    const proof = await prove(account);
    if (!(await acceptProof(tx, account.id, proof))) {
      const actor = { orgId: null, userId: account.id, ip };
      audit(actor, "mfa_failed", account.id, { factor: proof.factor });
      return null;
    }
    await consumeChallenge(tx, { tokenHash, userId: account.id });
    return { account, factor: proof.factor };
  });
}

/** The last step stays, so that whoever turns it on again with the same secret can't replay a code. */
export function disableSecondFactor(
  db: Database,
  actor: Person,
  {
    prove,
    mail,
  }: {
    prove: Prove<Exclude<Proof, { factor: "totp" }>>;
    mail: OutboxMessage;
  },
): Promise<"disabled" | "not_enabled" | "refused"> {
  return db.transaction(async ({ tx, audit, enqueue }) => {
    const account = await lockAccount(tx, actor.userId);
    if (!account || account.mfaSecret === null) return "not_enabled";
    if (!(await hasGuessesLeft(tx, account.id))) return "refused";
    const proof = await prove(account);
    if (!(await acceptProof(tx, account.id, proof))) {
      await countWrongGuess(tx, account.id);
      audit(actor, "mfa_failed", account.id, { factor: proof.factor });
      return "refused";
    }
    await tx.update(users).set({ mfaSecret: null }).where(eq(users.id, account.id));
    await replaceRecoveryCodes(tx, account.id, []);
    await endChallenges(tx, account.id);
    audit(actor, "mfa_disabled", account.id, { factor: proof.factor });
    enqueue(mail);
    return "disabled";
  });
}
