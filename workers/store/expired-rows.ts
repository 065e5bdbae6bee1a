/** Rows with an expiry are deleted by the scheduled job, some of them long after they have expired. */
import { lt } from "drizzle-orm";
import {
  EXPIRED_ROW_RETENTION_MS,
  EMAIL_CODE_GUESSES_WINDOW_MS,
  MFA_GUESSES_WINDOW_MS,
} from "../limits.ts";
import { ago } from "./clock.ts";
import type { Database } from "./database.ts";
import { emailCodes, mfaChallenges, mfaRemovals, passwordResets } from "./tables/accounts.ts";
import { invitations } from "./tables/organizations.ts";
import { sessions } from "./tables/sessions.ts";
import { deviceCodes } from "./tables/tokens.ts";

/** Each table, and how long its rows are kept after their expiry. */
const EXPIRING_TABLES = {
  sessions: { table: sessions, keepMs: EXPIRED_ROW_RETENTION_MS },
  devices: { table: deviceCodes, keepMs: 0 },
  // Until then, the row counts the guesses at an account's codes.
  codes: { table: emailCodes, keepMs: EMAIL_CODE_GUESSES_WINDOW_MS },
  removals: { table: mfaRemovals, keepMs: 0 },
  resets: { table: passwordResets, keepMs: 0 },
  // Until then, the rows count an account's wrong guesses.
  challenges: { table: mfaChallenges, keepMs: MFA_GUESSES_WINDOW_MS },
  // The audit log records whether an invitation was accepted, revoked or neither.
  invitations: { table: invitations, keepMs: EXPIRED_ROW_RETENTION_MS },
} as const;

type ExpiringRows = keyof typeof EXPIRING_TABLES;
export const EXPIRING_ROWS = Object.keys(EXPIRING_TABLES) as ExpiringRows[];

export async function deleteExpiredRows({ query }: Database, rows: ExpiringRows): Promise<void> {
  const { table, keepMs } = EXPIRING_TABLES[rows];
  await query.delete(table).where(lt(table.expiresAt, ago(keepMs)));
}
