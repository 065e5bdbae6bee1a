/** Tokens that reset a forgotten password, each usable once. */
import { and, eq, gt, isNotNull, isNull, sql } from "drizzle-orm";
import { PASSWORD_RESETS_MAX, PASSWORD_RESET_MAX_MS } from "../../limits.ts";
import { fromNow } from "../clock.ts";
import { endChallenges } from "./challenges.ts";
import type { Database, UnitOfWork } from "../database.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { endRemoval } from "./mfa-removals.ts";
import { revokeSessions } from "./sessions.ts";
import { confirmTokens, revokeTokensOfSessions } from "../tokens/session-tokens.ts";
import { passwordResets, users } from "../tables/accounts.ts";

/** Does nothing for an address without a verified account, or with too many unused tokens. */
export function requestPasswordReset(
  db: Database,
  { email, tokenHash, mail, ip }: PasswordLink & { email: string; ip: string },
): Promise<void> {
  return db.transaction(async ({ tx, audit, enqueue }) => {
    // The lock makes concurrent requests count one after the other.
    const [user] = await tx
      .select({ id: users.id })
      .from(users)
      .where(and(eq(users.email, email), isNotNull(users.emailVerifiedAt)))
      .for("update");
    if (!user) return;
    const isUnused = and(
      eq(passwordResets.userId, user.id),
      isNull(passwordResets.usedAt),
      gt(passwordResets.expiresAt, sql`now()`),
    );
    if ((await tx.$count(passwordResets, isUnused)) >= PASSWORD_RESETS_MAX) return;
    await insertPasswordLink({ tx, enqueue }, user.id, { tokenHash, mail });
    audit({ orgId: null, userId: user.id, ip }, "password_reset_requested", user.id);
  });
}

/** A token that sets the password of an account, and the mail with it. */
export interface PasswordLink {
  tokenHash: string;
  mail: OutboxMessage;
}

export async function insertPasswordLink(
  { tx, enqueue }: Pick<UnitOfWork, "tx" | "enqueue">,
  userId: string,
  { tokenHash, mail }: PasswordLink,
): Promise<void> {
  const expiresAt = fromNow(PASSWORD_RESET_MAX_MS);
  await tx.insert(passwordResets).values({ tokenHash, userId, expiresAt });
  enqueue(mail);
}

/** For checking a new password before the token is used. */
export async function findResetEmail(
  { query }: Database,
  tokenHash: string,
): Promise<string | null> {
  const [user] = await query
    .select({ email: users.email })
    .from(passwordResets)
    .innerJoin(users, eq(users.id, passwordResets.userId))
    .where(isUsable(tokenHash));
  return user?.email ?? null;
}

/**
 * Sets the new password and ends all sessions, challenges, pending removals of the second factor and other reset tokens
 * of the account, since an attacker may have them. The second factor is not changed. Tokens that the account's sessions
 * minted, including sessions that had ended before, are revoked or confirmed: an attacker can end a session after minting.
 */
export function resetPassword(
  db: Database,
  {
    tokenHash,
    passwordHash,
    keepTokens,
    mail,
    ip,
  }: {
    tokenHash: string;
    passwordHash: string;
    /** Whether the tokens stay valid, even after later resets. */
    keepTokens: boolean;
    mail: OutboxMessage;
    ip: string;
  },
): Promise<"reset" | "invalid_token"> {
  return db.transaction(async (change) => {
    const { tx, audit, enqueue } = change;
    // A request locks the account before its tokens too; another order could cause a deadlock. The key of the account
    // stays unlocked, because minting a token refers to it.
    const [user] = await tx
      .select({ id: users.id })
      .from(passwordResets)
      .innerJoin(users, eq(users.id, passwordResets.userId))
      .where(eq(passwordResets.tokenHash, tokenHash))
      .for("no key update", { of: users });
    if (!user) return "invalid_token";
    const spent = await tx
      .update(passwordResets)
      .set({ usedAt: sql`now()` })
      .where(isUsable(tokenHash))
      .returning({ userId: passwordResets.userId });
    if (spent.length === 0) return "invalid_token";
    await tx
      .update(passwordResets)
      .set({ usedAt: sql`now()` })
      .where(and(eq(passwordResets.userId, user.id), isNull(passwordResets.usedAt)));

    await tx.update(users).set({ passwordHash }).where(eq(users.id, user.id));
    await endChallenges(tx, user.id);
    await endRemoval(tx, user.id);
    const actor = { orgId: null, userId: user.id, ip };
    await revokeSessions(change, actor);
    if (keepTokens) await confirmTokens(tx, user.id);
    else await revokeTokensOfSessions(change, actor);
    enqueue(mail);
    audit(actor, "password_reset", user.id, { keepTokens });
    return "reset";
  });
}

function isUsable(tokenHash: string) {
  return and(
    eq(passwordResets.tokenHash, tokenHash),
    isNull(passwordResets.usedAt),
    gt(passwordResets.expiresAt, sql`now()`),
  );
}
