/** Mailboxes, for the bounds of mails that people did not ask for: addresses with different tags lead to the same one. */
import { eq, sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { toMailbox } from "../tables/columns.ts";
import type { Transaction } from "../transaction.ts";

/** Until the commit, so that concurrent mails to the mailbox of an address count each other. */
export async function lockMailbox(tx: Transaction, email: string): Promise<void> {
  await tx.execute(
    sql`select pg_advisory_xact_lock(hashtextextended(${toMailbox(sql`${email}::text`)}, 0))`,
  );
}

export function isOfSameMailbox(column: PgColumn, email: string): SQL {
  return eq(toMailbox(column), toMailbox(sql`${email}::text`));
}
