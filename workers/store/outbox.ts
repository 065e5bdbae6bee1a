/**
 * Messages of committed changes. A row lives until its message is delivered: the request that wrote it delivers at once,
 * the scheduled job retries. A message that can't be delivered for days is parked, for an operator to look at.
 */
import { and, eq, inArray, isNull, lt, lte, ne, sql } from "drizzle-orm";
import { MAIL_BATCH_ROWS, OUTBOX_BATCH_ROWS } from "../limits.ts";
import { splitIntoChunks } from "./chunks.ts";
import { ago, fromNow } from "./clock.ts";
import type { OutboxKind, OutboxMessage, OutboxRow } from "./outbox-messages.ts";
import { outbox } from "./tables/outbox.ts";
import type { Queries, Transaction } from "./transaction.ts";
import { DAY_MS, HOUR_MS } from "../../shared/time.ts";

/** The request that wrote a message delivers it within this time; then the scheduled job may. */
export const OUTBOX_LEASE_MS = 30_000;
export const OUTBOX_RETRY_MIN_MS = 30_000;
export const OUTBOX_RETRY_MAX_MS = HOUR_MS;
/** A mail that no server has accepted for this long is deleted: its codes have expired. */
const OUTBOX_MAIL_MAX_MS = DAY_MS;
/** Every other message is parked after this. */
const OUTBOX_PARK_AFTER_MS = 7 * DAY_MS;
const LAST_ERROR_MAX_CHARS = 500;

type Db = { query: Queries };

export async function insertOutbox(
  tx: Transaction,
  messages: OutboxMessage[],
): Promise<OutboxRow[]> {
  const nextAttemptAt = fromNow(OUTBOX_LEASE_MS);
  const inserted: OutboxRow[] = [];
  for (const some of splitIntoChunks(messages)) {
    const rows = await tx
      .insert(outbox)
      .values(some.map((message) => ({ ...message, nextAttemptAt })))
      .returning({ id: outbox.id });
    some.forEach((message, at) => inserted.push({ ...message, id: rows[at]!.id, attempts: 0 }));
  }
  return inserted;
}

/**
 * Claims mails, or messages of other kinds, that are due. Each row goes to one caller, and is due again after a longer
 * delay each time.
 */
export async function claimDueMessages(
  { query }: Db,
  which: "mails" | "others",
): Promise<OutboxRow[]> {
  const due = query
    .select({ id: outbox.id })
    .from(outbox)
    .where(
      and(
        lte(outbox.nextAttemptAt, sql`now()`),
        isNull(outbox.parkedAt),
        which === "mails" ? eq(outbox.kind, "mail") : ne(outbox.kind, "mail"),
      ),
    )
    .orderBy(outbox.id)
    .limit(which === "mails" ? MAIL_BATCH_ROWS : OUTBOX_BATCH_ROWS)
    .for("update", { skipLocked: true });
  const waitMs = sql`least(${OUTBOX_RETRY_MAX_MS}, ${OUTBOX_RETRY_MIN_MS} * power(2, least(${outbox.attempts}, 20)))`;
  const rows = await query
    .update(outbox)
    .set({
      attempts: sql`${outbox.attempts} + 1`,
      nextAttemptAt: sql`now() + ${waitMs} * interval '1 millisecond'`,
    })
    .where(inArray(outbox.id, due))
    .returning({
      id: outbox.id,
      kind: outbox.kind,
      payload: outbox.payload,
      attempts: outbox.attempts,
    });
  return rows as OutboxRow[];
}

export async function deleteMessages({ query }: Db, ids: number[]): Promise<void> {
  if (ids.length > 0) await query.delete(outbox).where(inArray(outbox.id, ids));
}

/** Saves in the rows why their last delivery failed. */
export async function saveErrors(
  { query }: Db,
  failures: readonly { id: number; error: string }[],
): Promise<void> {
  for (const [error, some] of Map.groupBy(failures, ({ error }) => error)) {
    const ids = some.map(({ id }) => id);
    await query
      .update(outbox)
      .set({ lastError: error.slice(0, LAST_ERROR_MAX_CHARS) })
      .where(inArray(outbox.id, ids));
  }
}

/** @returns the messages that are not retried until an operator sets `parked_at` to null. */
export function parkUndeliverable({ query }: Db): Promise<{ id: number; kind: OutboxKind }[]> {
  return query
    .update(outbox)
    .set({ parkedAt: sql`now()` })
    .where(
      and(
        ne(outbox.kind, "mail"),
        isNull(outbox.parkedAt),
        lt(outbox.createdAt, ago(OUTBOX_PARK_AFTER_MS)),
        lte(outbox.nextAttemptAt, sql`now()`),
      ),
    )
    .returning({ id: outbox.id, kind: outbox.kind });
}

/** Deletes the mails that no server has accepted for a day. @returns how many. */
export async function deleteOverdueMails({ query }: Db): Promise<number> {
  const isOverdue = lt(outbox.createdAt, ago(OUTBOX_MAIL_MAX_MS));
  const rows = await query
    .delete(outbox)
    .where(and(eq(outbox.kind, "mail"), isOverdue))
    .returning({ id: outbox.id });
  return rows.length;
}
