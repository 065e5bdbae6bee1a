/** Accounts: people, and the organization that each of them gets. */
import { and, eq, gt, inArray, isNull, lt, not, notExists, or, sql } from "drizzle-orm";
import { EMAIL_CODE_GUESSES_WINDOW_MS } from "../../limits.ts";
import type { Change, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { insertOrganization, type OrganizationTerms } from "../organizations/organizations.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { emailCodes, users } from "../tables/accounts.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

const EMAIL_CODE_MAX_MS = 10 * MINUTE_MS;
const EMAIL_CODE_MAX_ATTEMPTS = 5;
/** Guesses at the codes of one address, however often another one is asked for. */
const EMAIL_CODE_HOURLY_MAX_GUESSES = 20;

export type UserRow = typeof users.$inferSelect;

export interface NewCode {
  email: string;
  codeHash: string;
  /** Carries the code. */
  mail: OutboxMessage;
  ip: string;
}

/**
 * Starts an account, or starts it over while its address is unconfirmed: the password that counts is the
 * one of whoever asked for the code that is entered. An account that is confirmed stays as it is, and yet
 * the same statements run: how long they take tells nothing. Its code is for nothing, since only an
 * unconfirmed address can be confirmed.
 */
export function signUp(
  db: Database,
  {
    email,
    codeHash,
    mail,
    ip,
    passwordHash,
    mailIfKnown,
  }: NewCode & {
    passwordHash: string;
    /** For an address whose account is confirmed. */
    mailIfKnown: OutboxMessage;
  },
): Promise<void> {
  return db.transaction(async ({ tx, audit, enqueue }) => {
    const isUnconfirmed = isNull(users.emailVerifiedAt);
    const [user] = await tx
      .insert(users)
      .values({ email, passwordHash })
      .onConflictDoUpdate({
        target: users.email,
        set: {
          passwordHash: sql`case when ${isUnconfirmed} then excluded.password_hash else ${users.passwordHash} end`,
        },
      })
      .returning({
        id: users.id,
        isNew: sql<boolean>`${users.createdAt} = now()`,
        isUnconfirmed: sql<boolean>`${isUnconfirmed}`,
      });
    const { id, isNew, isUnconfirmed: mayConfirm } = user!;
    await replaceCode(tx, id, codeHash);
    enqueue(mayConfirm ? mail : mailIfKnown);
    audit({ orgId: null, userId: id, ip }, isNew ? "account_created" : "sign_up_repeated", id);
  });
}

/** Another code for an account that waits for one; the earlier one is void. Nothing for any other address. */
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
  const fresh = {
    codeHash,
    attempts: 0,
    consumedAt: null,
    createdAt: new Date(),
    expiresAt: new Date(Date.now() + EMAIL_CODE_MAX_MS),
  };
  await tx
    .insert(emailCodes)
    .values({ userId, ...fresh })
    .onConflictDoUpdate({ target: emailCodes.userId, set: fresh });
}

/**
 * Spends an attempt, whatever comes of it, and confirms the address if the code is right. One statement
 * counts and compares: however many guesses arrive at once, five are looked at, and twenty an hour however
 * many codes are asked for.
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
    /** Of the one code that was entered, under each key that it may have been hashed with. */
    codeHashes: string[];
    terms: OrganizationTerms;
    ip: string;
  },
): Promise<boolean> {
  return db.transaction(async (change) => {
    const now = sql`now()`;
    // The account before its code, as sign-up takes them: in another order the two could wait for each other.
    const userId = await lockUnverified(change.tx, email);
    if (userId === null) return false;
    const windowStart = sql`now() - ${EMAIL_CODE_GUESSES_WINDOW_MS} * interval '1 millisecond'`;
    const isCounting = gt(emailCodes.guessesSince, windowStart);
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
    const orgId = await insertOrganization(change.tx, { userId, email, terms });
    change.audit({ orgId, userId, ip }, "email_verified", userId);
    return true;
  });
}

/**
 * The first account of a self-hosted server. The lock makes two that arrive at once take turns, so that
 * the second finds the first's.
 *
 * @returns null when there is an account already.
 */
export async function insertFirstOwner(
  { tx, audit }: Change,
  {
    email,
    passwordHash,
    terms,
    ip,
  }: {
    email: string;
    passwordHash: string;
    terms: OrganizationTerms;
    ip: string;
  },
): Promise<{ userId: string; orgId: string } | null> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtext('underpass first owner'))`);
  const [someone] = await tx.select({ id: users.id }).from(users).limit(1);
  if (someone) return null;
  const [user] = await tx
    .insert(users)
    .values({ email, passwordHash, emailVerifiedAt: new Date(), isSuperadmin: true })
    .returning({ id: users.id });
  const userId = user!.id;
  const orgId = await insertOrganization(tx, { userId, email, terms });
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

/** Sign-ups that nobody confirmed. Whoever was sent a code a moment ago may be about to enter it. */
export async function deleteUnverifiedAccounts({ query }: Database, before: Date): Promise<void> {
  const goodCode = query
    .select({ userId: emailCodes.userId })
    .from(emailCodes)
    .where(and(eq(emailCodes.userId, users.id), gt(emailCodes.expiresAt, sql`now()`)));
  await query
    .delete(users)
    .where(and(isNull(users.emailVerifiedAt), lt(users.createdAt, before), notExists(goodCode)));
}

/** A code that has ended says nothing that the row's absence would not say. */
export async function deleteDeadCodes({ query }: Database, before: Date): Promise<void> {
  await query.delete(emailCodes).where(lt(emailCodes.expiresAt, before));
}
