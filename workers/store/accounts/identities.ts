/** Identities at sign-in providers, and the accounts that they are linked to. */
import { and, eq, sql } from "drizzle-orm";
import type { ProviderName } from "../../../protocol/schemas/accounts/providers.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import {
  insertInitialOrganization,
  type OrganizationTerms,
} from "../organizations/organizations.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { emailCodes, identities, users } from "../tables/accounts.ts";

interface Identity {
  provider: ProviderName;
  issuer: string;
  subject: string;
}

const FOUND = { id: users.id, passwordHash: users.passwordHash, mfaSecret: users.mfaSecret };
type FoundUser = Pick<typeof users.$inferSelect, keyof typeof FOUND>;

/**
 * Finds the account that an identity is linked to. A new identity is linked to the account with its address, which is
 * created if needed, and locked: of concurrent first sign-ins, one creates the account and the others find it.
 */
export function findOrLinkAccount(
  db: Database,
  identity: Identity,
  {
    email,
    terms,
    ip,
    mailIfLinked,
  }: {
    /** null: the provider verified none. Then only an identity that is already linked can sign in. */
    email: string | null;
    terms: OrganizationTerms;
    ip: string;
    /** Sent if the account existed before. */
    mailIfLinked: OutboxMessage | null;
  },
): Promise<FoundUser | "email_not_verified" | "linked_to_another"> {
  return db.transaction(async (change) => {
    const { tx, rollback } = change;
    const linked = await findUser(tx, identity);
    if (linked) return linked;
    if (email === null) return "email_not_verified";

    const account = await findOrCreateAccount(change, { email, terms });
    const links = await tx
      .insert(identities)
      .values({ ...identity, userId: account.user.id })
      .onConflictDoNothing()
      .returning({ userId: identities.userId });
    if (links.length === 0) {
      // A concurrent request has linked it, or the account is linked to another subject of this provider.
      const winner = await findUser(tx, identity);
      return rollback(winner ?? "linked_to_another");
    }

    const { user, orgId, action } = account;
    const actor = { orgId, userId: user.id, ip };
    const metadata = { provider: identity.provider };
    if (action) change.audit(actor, action, user.id, metadata);
    change.audit(actor, "identity_linked", user.id, metadata);
    if (action === null && mailIfLinked) change.enqueue(mailIfLinked);
    return user;
  });
}

async function findUser(
  tx: Transaction,
  { provider, issuer, subject }: Identity,
): Promise<FoundUser | null> {
  const [user] = await tx
    .select(FOUND)
    .from(identities)
    .innerJoin(users, eq(users.id, identities.userId))
    .where(
      and(
        eq(identities.provider, provider),
        eq(identities.issuer, issuer),
        eq(identities.subject, subject),
      ),
    );
  return user ?? null;
}

interface ClaimedAccount {
  user: FoundUser;
  /** The organization that was created with the account. */
  orgId: string | null;
  /** null: the account existed and was verified. */
  action: "account_created" | "email_verified" | null;
}

/**
 * Finds or creates the account of an address that a provider has verified, and marks it as verified. An unverified account may
 * have been created by an attacker who waits for the owner of the address: its password and code are removed.
 */
async function findOrCreateAccount(
  { tx }: Pick<UnitOfWork, "tx">,
  { email, terms }: { email: string; terms: OrganizationTerms },
): Promise<ClaimedAccount> {
  const id = crypto.randomUUID();
  const now = sql`now()`;
  // If the account exists, this changes nothing, but locks and returns it in the same statement.
  const [row] = await tx
    .insert(users)
    .values({ id, email, emailVerifiedAt: now })
    .onConflictDoUpdate({ target: users.email, set: { email } })
    .returning({ ...FOUND, emailVerifiedAt: users.emailVerifiedAt });
  const { emailVerifiedAt, ...user } = row!;
  const userId = user.id;
  const isNew = userId === id;
  if (!isNew && emailVerifiedAt) return { user, orgId: null, action: null };

  if (!isNew) {
    const verified = { passwordHash: null, emailVerifiedAt: now };
    await tx.update(users).set(verified).where(eq(users.id, userId));
    await tx.delete(emailCodes).where(eq(emailCodes.userId, userId));
  }
  const orgId = await insertInitialOrganization(tx, { userId, email, terms });
  const action = isNew ? "account_created" : "email_verified";
  return { user: { ...user, passwordHash: null }, orgId, action };
}
