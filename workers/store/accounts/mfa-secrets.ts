/** Encrypted TOTP secrets of accounts: lists those encrypted with an earlier key, and replaces them. */
import { and, asc, eq, gt, isNotNull, not, like } from "drizzle-orm";
import { REENCRYPTION_BATCH_ROWS } from "../../limits.ts";
import type { Database } from "../database.ts";
import { users } from "../tables/accounts.ts";

export interface EncryptedMfaSecret {
  userId: string;
  encrypted: string;
}

/** A batch of secrets that do not begin with `prefix`, ordered by id. @param after undefined for the first batch. */
export async function listMfaSecretsUnderOtherKeys(
  { query }: Pick<Database, "query">,
  prefix: string,
  after: string | undefined,
): Promise<EncryptedMfaSecret[]> {
  const rows = await query
    .select({ userId: users.id, encrypted: users.mfaSecret })
    .from(users)
    .where(
      and(
        isNotNull(users.mfaSecret),
        not(like(users.mfaSecret, `${prefix}%`)),
        after === undefined ? undefined : gt(users.id, after),
      ),
    )
    .orderBy(asc(users.id))
    .limit(REENCRYPTION_BATCH_ROWS);
  return rows.map(({ userId, encrypted }) => ({ userId, encrypted: encrypted! }));
}

/** Changes nothing when the stored secret is not the one that was read: its owner has replaced it meanwhile. */
export async function replaceMfaSecret(
  { query }: Pick<Database, "query">,
  { userId, encrypted }: EncryptedMfaSecret,
  reencrypted: string,
): Promise<void> {
  await query
    .update(users)
    .set({ mfaSecret: reencrypted })
    .where(and(eq(users.id, userId), eq(users.mfaSecret, encrypted)));
}
