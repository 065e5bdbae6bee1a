/** Users and their credentials. */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";
import { PROVIDERS } from "../../../protocol/schemas/accounts/providers.ts";
import { isIn } from "./checks.ts";
import { timestamptz, toMailbox } from "./columns.ts";

export const users = pgTable(
  "users",
  {
    id: uuid().primaryKey().defaultRandom(),
    /** NFKC and lower case. */
    email: text().notNull(),
    /**
     * Argon2id in PHC form. null: a verified account signs in through a provider only; an unverified one had sign-ups
     * with different passwords, and none of these counts.
     */
    passwordHash: text(),
    emailVerifiedAt: timestamptz(),
    isSuperadmin: boolean().notNull().default(false),
    /** The TOTP secret, encrypted. null: there is no second factor. */
    mfaSecret: text(),
    /** The newest time step whose code was accepted: codes of it and of earlier steps are refused. */
    mfaLastStep: bigint({ mode: "number" }),
    /** Mails that requests without a sign-in have sent to this address since `mailsSince`. */
    mailsSent: integer().notNull().default(0),
    mailsSince: timestamptz().notNull().defaultNow(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("users_email_key").on(table.email),
    index("users_mailbox_idx").on(toMailbox(table.email), table.mailsSince),
    index("users_unverified_idx")
      .on(table.createdAt)
      .where(sql`${table.emailVerifiedAt} is null`),
    check("users_email_lower", sql`${table.email} = lower(${table.email})`),
  ],
);

/** At most one code of an account is valid: requesting another one replaces the row. */
export const emailCodes = pgTable(
  "email_codes",
  {
    userId: uuid()
      .primaryKey()
      .references(() => users.id, { onDelete: "cascade" }),
    /** Keyed hash in hex: six digits could be guessed from a plain one. */
    codeHash: text().notNull(),
    attempts: integer().notNull().default(0),
    /** Guesses over all codes since `guessesSince`: a new code does not reset the count. */
    guesses: integer().notNull().default(0),
    guessesSince: timestamptz().notNull().defaultNow(),
    expiresAt: timestamptz().notNull(),
    consumedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [index("email_codes_expires_at_idx").on(table.expiresAt)],
);

/** Accounts at providers that lead to accounts here. */
export const identities = pgTable(
  "identities",
  {
    provider: text({ enum: PROVIDERS }).notNull(),
    /** The issuer of these subjects: each issuer is a namespace of its own. */
    issuer: text().notNull(),
    subject: text().notNull(),
    userId: uuid()
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ columns: [table.provider, table.issuer, table.subject] }),
    uniqueIndex("identities_user_id_key").on(table.userId, table.provider, table.issuer),
    check("identities_provider", isIn(table.provider, PROVIDERS)),
  ],
);

/** Between the first factor and the second: five minutes, five guesses, one success. */
export const mfaChallenges = pgTable(
  "mfa_challenges",
  {
    /** SHA-256 in hex. */
    tokenHash: text().primaryKey(),
    userId: uuid()
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    attempts: integer().notNull().default(0),
    expiresAt: timestamptz().notNull(),
    consumedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    index("mfa_challenges_user_id_idx").on(table.userId, table.createdAt),
    index("mfa_challenges_expires_at_idx").on(table.expiresAt),
  ],
);

export const recoveryCodes = pgTable(
  "recovery_codes",
  {
    userId: uuid()
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    /** SHA-256 in hex: a code has 80 random bits. */
    codeHash: text().notNull(),
    usedAt: timestamptz(),
  },
  (table) => [primaryKey({ columns: [table.userId, table.codeHash] })],
);

export const passwordResets = pgTable(
  "password_resets",
  {
    /** SHA-256 in hex. */
    tokenHash: text().primaryKey(),
    userId: uuid()
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    expiresAt: timestamptz().notNull(),
    usedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    index("password_resets_user_id_idx").on(table.userId),
    index("password_resets_expires_at_idx").on(table.expiresAt),
  ],
);

/** Mailed links that remove an account's second factor after a delay. At most one of an account is pending. */
export const mfaRemovals = pgTable(
  "mfa_removals",
  {
    userId: uuid()
      .primaryKey()
      .references(() => users.id, { onDelete: "cascade" }),
    /** SHA-256 in hex. */
    tokenHash: text().notNull(),
    requestedAt: timestamptz().notNull().defaultNow(),
    /** The link removes the second factor from this time on, until it expires. */
    usableAt: timestamptz().notNull(),
    expiresAt: timestamptz().notNull(),
    /** Set when it was used or canceled, or when another change has made it void. */
    endedAt: timestamptz(),
  },
  (table) => [
    uniqueIndex("mfa_removals_token_hash_key").on(table.tokenHash),
    index("mfa_removals_expires_at_idx").on(table.expiresAt),
  ],
);
