/**
 * What must reach an object or a mailbox after a commit. A row lives until its message has arrived: the
 * request that wrote it delivers at once, the scheduled job whatever that request could not.
 */
import { and, eq, inArray, lt, lte, ne, sql } from "drizzle-orm";
import { MAIL_BATCH_ROWS, OUTBOX_BATCH_ROWS } from "../limits.ts";
import type { ReceiverSettings } from "../../durable-objects/receiver/settings.ts";
import type { TunnelSettings } from "../../access/settings.ts";
import type { Capturing } from "../../protocol/schemas/inspector/captures.ts";
import type { Revocation } from "../../protocol/relay/link.ts";
import type { WatchingEnd } from "../../durable-objects/organization.ts";
import type { Maintenance } from "../../durable-objects/tunnel/proxy/gatekeeper.ts";
import type { Stopping } from "../../durable-objects/tunnel/agents/lifetime.ts";
import type { Queries, Transaction } from "./transaction.ts";
import { chunks } from "./chunks.ts";
import { outbox } from "./tables/records.ts";

/** Until then the request that wrote the row is the one that delivers it. */
const OUTBOX_LEASE_MS = 30_000;
export const OUTBOX_RETRY_MIN_MS = 30_000;
export const OUTBOX_RETRY_MAX_MS = 3600_000;
/** Later, nobody waits for this mail any longer: the codes in it are dead. */
const OUTBOX_MAIL_MAX_MS = 24 * 3600_000;

export interface RouteChange {
  host: string;
  tunnelId: string | null;
  version: number;
  /** The tunnel that the host led to and is still there. */
  from?: string;
}

export type OutboxMessage =
  | { kind: "hostname"; payload: RouteChange }
  | { kind: "tunnel_retired"; payload: { tunnelId: string; why?: "deleted" | "expired" } }
  | { kind: "tunnel_stopping"; payload: { tunnelId: string; stopping: Stopping } }
  | { kind: "tunnel_ends"; payload: { tunnelId: string; atMs: number } }
  | { kind: "tunnel_settings"; payload: { tunnelId: string; settings: TunnelSettings } }
  | { kind: "connection_ended"; payload: { tunnelId: string; agentId: string } }
  | { kind: "tunnel_capturing"; payload: { tunnelId: string; capturing: Capturing } }
  | { kind: "watching_ended"; payload: { orgId: string; whose: WatchingEnd } }
  | { kind: "tunnel_maintenance"; payload: { tunnelId: string; maintenance: Maintenance } }
  /** What came by then: a late delivery must not take what came since. */
  | { kind: "tunnel_captures_cleared"; payload: { tunnelId: string; untilMs: number } }
  | {
      kind: "token_revoked" | "token_over_budget";
      payload: { tokenNonce: string; tunnelIds: string[] };
    }
  /** At the payment provider, at once. */
  | { kind: "subscription_end"; payload: { subscriptionId: string } }
  /** To be made to agree with what the rows say of the domain by then. */
  | { kind: "custom_hostname"; payload: { domain: string } }
  | { kind: "receiver_settings"; payload: { receiverId: string; settings: ReceiverSettings } }
  | { kind: "receiver_retired"; payload: { receiverId: string } }
  | { kind: "relay_revocation"; payload: { relayId: string; revocation: Revocation } }
  /** Sealed: a mail carries codes, and rows end up in backups. */
  | { kind: "mail"; payload: { sealed: string } };

export type OutboxRow = OutboxMessage & { id: number; attempts: number };

export async function insertOutbox(
  tx: Transaction,
  messages: OutboxMessage[],
): Promise<OutboxRow[]> {
  const nextAttemptAt = new Date(Date.now() + OUTBOX_LEASE_MS);
  const inserted: OutboxRow[] = [];
  for (const some of chunks(messages)) {
    const rows = await tx
      .insert(outbox)
      .values(some.map((message) => ({ ...message, nextAttemptAt })))
      .returning({ id: outbox.id });
    some.forEach((message, at) => inserted.push({ ...message, id: rows[at]!.id, attempts: 0 }));
  }
  return inserted;
}

/**
 * Takes what is due, of mails or of all else. Each row is taken by one caller only, and comes due again
 * later each time.
 */
export async function claimDueMessages(
  { read }: { read: Queries },
  what: "mails" | "others",
): Promise<OutboxRow[]> {
  const due = read
    .select({ id: outbox.id })
    .from(outbox)
    .where(
      and(
        lte(outbox.nextAttemptAt, sql`now()`),
        what === "mails" ? eq(outbox.kind, "mail") : ne(outbox.kind, "mail"),
      ),
    )
    .orderBy(outbox.id)
    .limit(what === "mails" ? MAIL_BATCH_ROWS : OUTBOX_BATCH_ROWS)
    .for("update", { skipLocked: true });
  const waitMs = sql`least(${OUTBOX_RETRY_MAX_MS}, ${OUTBOX_RETRY_MIN_MS} * power(2, least(${outbox.attempts}, 20)))`;
  const rows = await read
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

export async function deleteMessages({ read }: { read: Queries }, ids: number[]): Promise<void> {
  if (ids.length > 0) await read.delete(outbox).where(inArray(outbox.id, ids));
}

/** @returns how many mails were given up. */
export async function dropStaleMail({ read }: { read: Queries }): Promise<number> {
  const before = new Date(Date.now() - OUTBOX_MAIL_MAX_MS);
  const rows = await read
    .delete(outbox)
    .where(and(eq(outbox.kind, "mail"), lt(outbox.createdAt, before)))
    .returning({ id: outbox.id });
  return rows.length;
}
