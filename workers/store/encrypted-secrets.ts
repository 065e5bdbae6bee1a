/** What accounts keep sealed: found by the key that it is under, and put under another one. */
import { and, asc, eq, gt, isNotNull, not, like } from "drizzle-orm";
import { REENCRYPTION_BATCH_ROWS } from "../limits.ts";
import type { Database } from "./database.ts";
import { users } from "./tables/accounts.ts";

export interface EncryptedSecret {
  userId: string;
  sealed: string;
}

/** A batch of what does not begin with `prefix`, in the order of ids. @param after undefined at the start. */
export async function listSecretsUnderOtherKeys(
  { query }: Pick<Database, "query">,
  prefix: string,
  after: string | undefined,
): Promise<EncryptedSecret[]> {
  const rows = await query
    .select({ userId: users.id, sealed: users.mfaSecret })
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
  return rows.map(({ userId, sealed }) => ({ userId, sealed: sealed! }));
}

/** Nothing when the secret is not the one that was read: its owner has replaced it meanwhile. */
export async function replaceEncryptedSecret(
  { query }: Pick<Database, "query">,
  { userId, sealed }: EncryptedSecret,
  resealed: string,
): Promise<void> {
  await query
    .update(users)
    .set({ mfaSecret: resealed })
    .where(and(eq(users.id, userId), eq(users.mfaSecret, sealed)));
}
