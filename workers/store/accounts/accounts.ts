/** Accounts, each created with an organization of its own. */
import { ago } from "../clock.ts";
import { and, eq, gt, inArray, isNull, lt, not, notExists, or, sql } from "drizzle-orm";
import { EMAIL_CODE_GUESSES_WINDOW_MS } from "../../limits.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { insertInitialOrganization, type InitialPlan } from "../organizations/organizations.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { emailCodes, users } from "../tables/accounts.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

const EMAIL_CODE_MAX_MS = 10 * MINUTE_MS;
const EMAIL_CODE_MAX_ATTEMPTS = 5;
/** Guesses at the codes of one address per hour, even if new codes are requested. */
const EMAIL_CODE_HOURLY_MAX_GUESSES = 20;

export type UserRow = typeof users.$inferSelect;

export interface NewCode {
  email: string;
  codeHash: string;
  /** The mail with the code. */
  mail: OutboxMessage;
  ip: string;
}

/**
 * Creates an account, or replaces the password of one whose address is unconfirmed: the newest code belongs to the newest
 * password. A confirmed account is not changed, but the same statements run, so that the response time does not reveal
 * whether the account exists. Its code is useless, since only an unconfirmed address can be confirmed.
 */
export function signUp(
  db: Database,
  {
    email,
    codeHash,
    mail,
    ip,
    passwordHash,
    mailIfVerified,
  }: NewCode & {
    passwordHash: string;
    /** Sent instead to the address of a confirmed account. */
    mailIfVerified: OutboxMessage;
  },
): Promise<void> {
  return db.transaction(async ({ tx, audit, enqueue }) => {
    const isUnverified = isNull(users.emailVerifiedAt);
    const [user] = await tx
      .insert(users)
      .values({ email, passwordHash })
      .onConflictDoUpdate({
        target: users.email,
        set: {
          passwordHash: sql`case when ${isUnverified} then excluded.password_hash else ${users.passwordHash} end`,
        },
      })
      .returning({
        id: users.id,
        isNew: sql<boolean>`${users.createdAt} = now()`,
        isUnverified: sql<boolean>`${isUnverified}`,
      });
    const { id, isNew, isUnverified: canConfirm } = user!;
    await replaceCode(tx, id, codeHash);
    enqueue(canConfirm ? mail : mailIfVerified);
    audit({ orgId: null, userId: id, ip }, isNew ? "account_created" : "sign_up_repeated", id);
  });
}

/** Replaces the code of an unconfirmed account. Does nothing for any other address. */
export function resendCode(db: Database, { email, codeHash, mail }: NewCode): Promise<void> {
  return db.transaction(async ({ tx, enqueue }) => {
    const userId = await lockUnverified(tx, email);
    if (userId === null) return;
    await replaceCode(tx, userId, codeHash);
    enqueue(mail);
  });
}

async function lockUnverified(tx: Transaction, email: string): Promise<string | null> {
  const [user] = await tx
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.email, email), isNull(users.emailVerifiedAt)))
    .for("update");
  return user?.id ?? null;
}

async function replaceCode(tx: Transaction, userId: string, codeHash: string): Promise<void> {
  const code = {
    codeHash,
    attempts: 0,
    consumedAt: null,
    createdAt: new Date(),
    expiresAt: new Date(Date.now() + EMAIL_CODE_MAX_MS),
  };
  await tx
    .insert(emailCodes)
    .values({ userId, ...code })
    .onConflictDoUpdate({ target: emailCodes.userId, set: code });
}

/**
 * Counts an attempt, and confirms the address if the code is right. A single statement counts and compares: of concurrent
 * guesses, at most five per code and twenty per hour are compared.
 *
 * @returns whether the address was confirmed.
 */
export function verifyEmail(
  db: Database,
  {
    email,
    codeHashes,
    terms,
    ip,
  }: {
    email: string;
    /** The hashes of the entered code, one for each key that may have been used. */
    codeHashes: string[];
    terms: InitialPlan;
    ip: string;
  },
): Promise<boolean> {
  return db.transaction(async (change) => {
    const now = sql`now()`;
    // Sign-up locks the account before its code too; another order could cause a deadlock.
    const userId = await lockUnverified(change.tx, email);
    if (userId === null) return false;
    const isCounting = gt(emailCodes.guessesSince, ago(EMAIL_CODE_GUESSES_WINDOW_MS));
    const [attempt] = await change.tx
      .update(emailCodes)
      .set({
        attempts: sql`${emailCodes.attempts} + 1`,
        guesses: sql`case when ${isCounting} then ${emailCodes.guesses} + 1 else 1 end`,
        guessesSince: sql`case when ${isCounting} then ${emailCodes.guessesSince} else ${now} end`,
        consumedAt: sql`case when ${inArray(emailCodes.codeHash, codeHashes)} then ${now} end`,
      })
      .where(
        and(
          eq(emailCodes.userId, userId),
          isNull(emailCodes.consumedAt),
          gt(emailCodes.expiresAt, now),
          lt(emailCodes.attempts, EMAIL_CODE_MAX_ATTEMPTS),
          or(not(isCounting), lt(emailCodes.guesses, EMAIL_CODE_HOURLY_MAX_GUESSES)),
        ),
      )
      .returning({ consumedAt: emailCodes.consumedAt });
    if (!attempt?.consumedAt) return false;

    await change.tx.update(users).set({ emailVerifiedAt: now }).where(eq(users.id, userId));
    const orgId = await insertInitialOrganization(change.tx, { userId, email, terms });
    change.audit({ orgId, userId, ip }, "email_verified", userId);
    return true;
  });
}

/**
 * Creates the first account of a self-hosted server. Because of the lock, the second of two concurrent requests finds the
 * account of the first.
 *
 * @returns null when an account exists already.
 */
export async function createFirstAccount(
  { tx, audit }: UnitOfWork,
  {
    email,
    passwordHash,
    terms,
    ip,
  }: {
    email: string;
    passwordHash: string;
    terms: InitialPlan;
    ip: string;
  },
): Promise<{ userId: string; orgId: string } | null> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtext('underpass first owner'))`);
  const [existing] = await tx.select({ id: users.id }).from(users).limit(1);
  if (existing) return null;
  const [user] = await tx
    .insert(users)
    .values({ email, passwordHash, emailVerifiedAt: new Date(), isSuperadmin: true })
    .returning({ id: users.id });
  const userId = user!.id;
  const orgId = await insertInitialOrganization(tx, { userId, email, terms });
  audit({ orgId, userId, ip }, "account_created", userId, { setup: true });
  return { userId, orgId };
}

export async function hasAccounts(db: Database): Promise<boolean> {
  const rows = await db.query.select({ id: users.id }).from(users).limit(1);
  return rows.length > 0;
}

export async function findUserByEmail(db: Database, email: string): Promise<UserRow | null> {
  const [user] = await db.query.select().from(users).where(eq(users.email, email));
  return user ?? null;
}

/** Deletes accounts that were not confirmed in time, unless they have a code that can still be entered. */
export async function deleteUnverifiedAccounts({ query }: Database, before: Date): Promise<void> {
  const validCode = query
    .select({ userId: emailCodes.userId })
    .from(emailCodes)
    .where(and(eq(emailCodes.userId, users.id), gt(emailCodes.expiresAt, sql`now()`)));
  await query
    .delete(users)
    .where(and(isNull(users.emailVerifiedAt), lt(users.createdAt, before), notExists(validCode)));
}
