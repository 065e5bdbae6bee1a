/** Accounts, each created with an organization of its own. */
import { ago, fromNow } from "../clock.ts";
import {
  and,
  desc,
  eq,
  gt,
  inArray,
  isNull,
  lt,
  not,
  notExists,
  or,
  sql,
  type SQL,
} from "drizzle-orm";
import {
  EMAIL_CODE_GUESSES_WINDOW_MS,
  EMAIL_CODE_MAX_MS,
  SIGN_UP_MAILS_HOURLY_MAX,
  UNVERIFIED_ACCOUNTS_MAX,
} from "../../limits.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { isOfSameMailbox, lockMailbox } from "./mailboxes.ts";
import type { Transaction } from "../transaction.ts";
import {
  insertInitialOrganization,
  type OrganizationTerms,
} from "../organizations/organizations.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { insertPasswordLink, type PasswordLink } from "./password-resets.ts";
import { emailCodes, users } from "../tables/accounts.ts";
import { HOUR_MS } from "../../../shared/time.ts";

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
 * Creates an account. A further sign-up with another password removes the password of an unverified account: it is
 * unknown which of them the owner of the mailbox sent, so none counts until the owner sets one with a mailed link. A
 * verified account is not changed, but the same statements run, so that the response time does not reveal whether the
 * account exists. Its code is useless, since only an unverified address can be verified.
 *
 * @param passwordHash equal for equal passwords of the address: see `hashNewPassword`.
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
    /** Sent instead to the address of a verified account. */
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
          passwordHash: sql`case
            when not (${isUnverified}) or ${users.passwordHash} = excluded.password_hash then ${users.passwordHash}
          end`,
        },
      })
      .returning({
        id: users.id,
        isNew: sql<boolean>`${users.createdAt} = now()`,
        isUnverified: sql<boolean>`${isUnverified}`,
      });
    const { id, isNew, isUnverified: canVerify } = user!;
    const canMail = await countMail(tx, { id, email });
    // Without a mail, the code of the last mail stays valid.
    if (canMail) {
      await replaceCode(tx, id, codeHash);
      enqueue(canVerify ? mail : mailIfVerified);
    }
    audit({ orgId: null, userId: id, ip }, isNew ? "account_created" : "sign_up_repeated", id);
  });
}

/** Replaces the code of an unverified account. Does nothing for any other address. */
export function resendCode(db: Database, { email, codeHash, mail }: NewCode): Promise<void> {
  return db.transaction(async ({ tx, enqueue }) => {
    const user = await lockUnverified(tx, email);
    if (!user || !(await countMail(tx, { id: user.id, email }))) return;
    await replaceCode(tx, user.id, codeHash);
    enqueue(mail);
  });
}

/**
 * Counts a mail that a request without a sign-in sends to the address of an account.
 * @returns false when the mailbox, to which addresses with different tags lead, has received its maximum within the hour.
 */
async function countMail(
  tx: Transaction,
  { id, email }: { id: string; email: string },
): Promise<boolean> {
  await lockMailbox(tx, email);
  const isCounting = gt(users.mailsSince, ago(HOUR_MS));
  const [mailbox] = await tx
    .select({ sent: sql<number>`coalesce(sum(${users.mailsSent}), 0)`.mapWith(Number) })
    .from(users)
    .where(and(isOfSameMailbox(users.email, email), isCounting));
  if (mailbox!.sent >= SIGN_UP_MAILS_HOURLY_MAX) return false;
  await tx
    .update(users)
    .set({
      mailsSent: sql`case when ${isCounting} then ${users.mailsSent} + 1 else 1 end`,
      mailsSince: sql`case when ${isCounting} then ${users.mailsSince} else now() end`,
    })
    .where(eq(users.id, id));
  return true;
}

async function lockUnverified(
  tx: Transaction,
  email: string,
): Promise<Pick<UserRow, "id" | "passwordHash"> | null> {
  const [user] = await tx
    .select({ id: users.id, passwordHash: users.passwordHash })
    .from(users)
    .where(and(eq(users.email, email), isNull(users.emailVerifiedAt)))
    .for("update");
  return user ?? null;
}

async function replaceCode(tx: Transaction, userId: string, codeHash: string): Promise<void> {
  const code = {
    codeHash,
    attempts: 0,
    consumedAt: null,
    createdAt: sql`now()`,
    expiresAt: fromNow(EMAIL_CODE_MAX_MS),
  };
  await tx
    .insert(emailCodes)
    .values({ userId, ...code })
    .onConflictDoUpdate({ target: emailCodes.userId, set: code });
}

/**
 * Counts an attempt, and verifies the address if the code is right. A single statement counts and compares: of concurrent
 * guesses, at most five per code and twenty per hour are compared. Until a code is right, an address without an account
 * takes the same statements, so that the response time does not reveal whether one has an account.
 *
 * @returns "no_password" when the address is verified, but sign-ups with different passwords competed for it: then a
 * link to set the password is mailed. null when the code is not valid.
 */
export function verifyEmail(
  db: Database,
  {
    email,
    codeHashes,
    terms,
    passwordLink,
    ip,
  }: {
    email: string;
    /** The hashes of the entered code, one for each key that may have been used. */
    codeHashes: string[];
    terms: OrganizationTerms;
    /** For an account without a password. */
    passwordLink: PasswordLink;
    ip: string;
  },
): Promise<"verified" | "no_password" | null> {
  return db.transaction(async (change) => {
    const now = sql`now()`;
    // The disk is not waited for: where there is no account, nothing is written.
    await change.tx.execute(sql`set local synchronous_commit = off`);
    // Sign-up locks the account before its code too; another order could cause a deadlock.
    const user = await lockUnverified(change.tx, email);
    const userId = user?.id ?? crypto.randomUUID();
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
    if (!user || !attempt?.consumedAt) return null;

    await change.tx.execute(sql`set local synchronous_commit to default`);
    await change.tx.update(users).set({ emailVerifiedAt: now }).where(eq(users.id, userId));
    const orgId = await insertInitialOrganization(change.tx, { userId, email, terms });
    change.audit({ orgId, userId, ip }, "email_verified", userId);
    if (user.passwordHash !== null) return "verified";
    await insertPasswordLink(change, userId, passwordLink);
    return "no_password";
  });
}

/**
 * Creates the owner's account of a self-hosted server. Because of the lock, the second of two concurrent requests finds
 * the account of the first. The owner sees the server's console, so an unverified account with the same address is taken
 * over, and other accounts do not prevent the setup.
 */
export async function createOwner(
  change: UnitOfWork,
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
): Promise<{ userId: string; orgId: string } | "has_owner" | "address_taken"> {
  const { tx, audit } = change;
  await tx.execute(sql`select pg_advisory_xact_lock(hashtext('underpass first owner'))`);
  if ((await tx.$count(users, eq(users.isSuperadmin, true))) > 0) return "has_owner";
  const verified = { passwordHash, emailVerifiedAt: sql`now()`, isSuperadmin: true };
  const [user] = await tx
    .insert(users)
    .values({ email, ...verified })
    .onConflictDoUpdate({
      target: users.email,
      set: verified,
      setWhere: isNull(users.emailVerifiedAt),
    })
    .returning({ id: users.id });
  if (!user) return "address_taken";
  const userId = user.id;
  await tx.delete(emailCodes).where(eq(emailCodes.userId, userId));
  const orgId = await insertInitialOrganization(tx, { userId, email, terms });
  audit({ orgId, userId, ip }, "account_created", userId, { setup: true });
  return { userId, orgId };
}

/** Whether the account that the setup creates exists. */
export async function hasOwner(db: Database): Promise<boolean> {
  const rows = await db.query
    .select({ id: users.id })
    .from(users)
    .where(eq(users.isSuperadmin, true))
    .limit(1);
  return rows.length > 0;
}

export async function findUserByEmail(db: Database, email: string): Promise<UserRow | null> {
  const [user] = await db.query.select().from(users).where(eq(users.email, email));
  return user ?? null;
}

/** @returns null when the account has no password, or does not exist. */
export async function findUserPasswordHash(
  { query }: Pick<Database, "query">,
  userId: string,
): Promise<string | null> {
  const [user] = await query
    .select({ passwordHash: users.passwordHash })
    .from(users)
    .where(eq(users.id, userId));
  return user?.passwordHash ?? null;
}

/**
 * Deletes accounts that were not verified in time, and the oldest beyond the maximum, unless they have a code that can
 * still be entered.
 */
export async function deleteUnverifiedAccounts(
  { query }: Pick<Database, "query">,
  before: SQL,
): Promise<void> {
  const validCode = query
    .select({ userId: emailCodes.userId })
    .from(emailCodes)
    .where(and(eq(emailCodes.userId, users.id), gt(emailCodes.expiresAt, sql`now()`)));
  const isUnverified = isNull(users.emailVerifiedAt);
  const newestInExcess = query
    .select({ createdAt: users.createdAt })
    .from(users)
    .where(isUnverified)
    .orderBy(desc(users.createdAt))
    .offset(UNVERIFIED_ACCOUNTS_MAX)
    .limit(1);
  const isOld = or(
    lt(users.createdAt, before),
    // Compared by the database, whose times are more exact than those of JavaScript.
    sql`${users.createdAt} <= (${newestInExcess})`,
  );
  await query.delete(users).where(and(isUnverified, isOld, notExists(validCode)));
}
