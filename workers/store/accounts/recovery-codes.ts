/** The recovery codes of accounts with a second factor. */
import { and, eq, isNull, sql } from "drizzle-orm";
import type { Transaction } from "../transaction.ts";
import { recoveryCodes } from "../tables/accounts.ts";

/** @param hashes empty: only deletes the account's codes. */
export async function replaceRecoveryCodes(
  tx: Transaction,
  userId: string,
  hashes: string[],
): Promise<void> {
  await tx.delete(recoveryCodes).where(eq(recoveryCodes.userId, userId));
  if (hashes.length === 0) return;
  await tx.insert(recoveryCodes).values(hashes.map((codeHash) => ({ userId, codeHash })));
}

/** @returns whether the code was unused. Of two concurrent uses, one succeeds. */
export async function consumeRecoveryCode(
  tx: Transaction,
  userId: string,
  codeHash: string,
): Promise<boolean> {
  const spent = await tx
    .update(recoveryCodes)
    .set({ usedAt: sql`now()` })
    .where(
      and(
        eq(recoveryCodes.userId, userId),
        eq(recoveryCodes.codeHash, codeHash),
        isNull(recoveryCodes.usedAt),
      ),
    )
    .returning({ userId: recoveryCodes.userId });
  return spent.length > 0;
}
