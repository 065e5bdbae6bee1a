/** How outbox messages are delivered, as functions over what they need: workers/jobs/outbox.ts supplies it. */
import type { OutboxKind, OutboxRow } from "../store/outbox-messages.ts";

export interface DeliveryDeps {
  /** Throws when the message was not delivered. */
  deliver(row: OutboxRow): Promise<void>;
  deleteMessages(ids: number[]): Promise<void>;
  saveErrors(failures: { id: number; error: string }[]): Promise<void>;
  log(level: "warn" | "error", event: string, fields: Record<string, unknown>): void;
  describeError(thrown: unknown): string;
}

export interface RetryDeps extends DeliveryDeps {
  claimDueMessages(which: "mails" | "others"): Promise<OutboxRow[]>;
  /** Takes messages that could not be delivered for days out of the retries. */
  parkUndeliverable(): Promise<{ id: number; kind: OutboxKind }[]>;
  /** Deletes the mails that no server has accepted for too long. @returns how many. */
  deleteOverdueMails(): Promise<number>;
}

/** Delivers each message and deletes its row. A failure is logged and saved in the row. @returns how many succeeded. */
export async function deliverMessages(deps: DeliveryDeps, rows: OutboxRow[]): Promise<number> {
  if (rows.length === 0) return 0;
  const delivered: number[] = [];
  const failures: { id: number; error: string }[] = [];
  await Promise.all(
    rows.map(async (row) => {
      const { id, kind, attempts } = row;
      try {
        await deps.deliver(row);
        delivered.push(id);
      } catch (error) {
        failures.push({ id, error: summarizeError(kind, error) });
        deps.log("warn", "delivery_failed", {
          id,
          kind,
          attempts,
          cause: deps.describeError(error),
        });
      }
    }),
  );
  const [deletion, saving] = await Promise.allSettled([
    deps.deleteMessages(delivered),
    deps.saveErrors(failures),
  ]);
  if (deletion.status === "rejected") {
    // The messages are delivered again later; every handler is idempotent.
    const cause = deps.describeError(deletion.reason);
    deps.log("warn", "outbox_not_cleared", { ids: delivered, cause });
  }
  if (saving.status === "rejected") {
    const ids = failures.map(({ id }) => id);
    const cause = deps.describeError(saving.reason);
    deps.log("warn", "delivery_errors_not_saved", { ids, cause });
  }
  return delivered.length;
}

/** A mail server's answer may contain the recipient's address, which must not be stored unencrypted. */
function summarizeError(kind: OutboxKind, thrown: unknown): string {
  if (!(thrown instanceof Error)) return typeof thrown;
  return kind === "mail" ? thrown.name : `${thrown.name}: ${thrown.message}`;
}

/** Retries the due messages, except mails, `batchRows` at a time. */
export async function retryOutbox(deps: RetryDeps, batchRows: number): Promise<void> {
  const parked = await deps.parkUndeliverable();
  if (parked.length > 0) deps.log("error", "messages_parked", { messages: parked });
  await retryDue(deps, "others", batchRows);
}

/** Retries mails, `batchRows` at a time. */
export async function retryMails(deps: RetryDeps, batchRows: number): Promise<void> {
  const dropped = await deps.deleteOverdueMails();
  if (dropped > 0) deps.log("error", "mail_given_up", { mails: dropped });
  await retryDue(deps, "mails", batchRows);
}

/** Stops when none of a batch is delivered: the rest waits for the next run. */
async function retryDue(
  deps: RetryDeps,
  which: "mails" | "others",
  batchRows: number,
): Promise<void> {
  for (;;) {
    const due = await deps.claimDueMessages(which);
    const delivered = await deliverMessages(deps, due);
    if (due.length < batchRows || delivered === 0) return;
  }
}

/** @throws Error when the work takes longer than `maxMs`; the work itself is not stopped. */
export async function withTimeLimit<Result>(maxMs: number, work: Promise<Result>): Promise<Result> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${maxMs} ms`)), maxMs);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
