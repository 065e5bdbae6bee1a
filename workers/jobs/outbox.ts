/** Brings the messages of committed changes to the objects and the mailbox they are for. */
import { waitUntil } from "cloudflare:workers";
import { OUTBOX_BATCH_ROWS, MAIL_BATCH_ROWS } from "../limits.ts";
import { configOf } from "../config/config.ts";
import type { Env } from "../env.ts";
import { describeError } from "../errors.ts";
import { publishRoute, stopSpending } from "../store/tunnels/live-tunnels.ts";
import { log } from "../../shared/log.ts";
import { organizationObject, receiverObject, relayObject, tunnelObject } from "../objects.ts";
import { connect, type Database } from "../store/database.ts";
import {
  claimDueMessages,
  deleteMessages,
  dropStaleMail,
  type OutboxRow,
} from "../store/outbox.ts";
import { agreeCustomHostname } from "../integrations/custom-hostnames.ts";
import { sendMail } from "../integrations/mail/mail.ts";
import { endSubscription } from "../integrations/payments/subscription-ends.ts";

/** With servers of others. */
const ELSEWHERE = new Set<OutboxRow["kind"]>(["mail", "custom_hostname", "subscription_end"]);

/** The database, with everything that its changes tell delivered. */
export function openDatabase(env: Env): Database {
  const db: Database = connect(env, async (rows) => {
    const isElsewhere = ({ kind }: OutboxRow) => ELSEWHERE.has(kind);
    // What others run may take its time, and nobody's answer depends on it.
    waitUntil(deliverAll(env, db, rows.filter(isElsewhere)));
    const others = rows.filter((row) => !isElsewhere(row));
    // Only a change of thousands tells more than this; its answer does not wait for all of them.
    const first = others.slice(0, OUTBOX_BATCH_ROWS);
    const delivered = await deliverAll(env, db, first);
    waitUntil(deliverInBatches(env, db, others.slice(OUTBOX_BATCH_ROWS)));
    return delivered === first.length;
  });
  return db;
}

async function deliverInBatches(env: Env, db: Database, rows: OutboxRow[]): Promise<void> {
  for (let at = 0; at < rows.length; at += OUTBOX_BATCH_ROWS) {
    await deliverAll(env, db, rows.slice(at, at + OUTBOX_BATCH_ROWS));
  }
}

/** What earlier deliveries could not. */
export async function drainOutbox(env: Env, db: Database): Promise<void> {
  await deliverAll(env, db, await claimDueMessages(db, "others"));
}

/**
 * The same for mails, a few at a time, so that each is tried by nobody else meanwhile. A server that takes
 * none of them is asked again by the next run.
 */
export async function drainMails(env: Env, db: Database): Promise<void> {
  const dropped = await dropStaleMail(db);
  if (dropped > 0) log("error", "mail_given_up", { mails: dropped });
  for (;;) {
    const mails = await claimDueMessages(db, "mails");
    const delivered = await deliverAll(env, db, mails);
    if (mails.length < MAIL_BATCH_ROWS || delivered === 0) return;
  }
}

/** @returns how many reached where they were going. */
async function deliverAll(env: Env, db: Database, rows: OutboxRow[]): Promise<number> {
  if (rows.length === 0) return 0;
  const delivered: number[] = [];
  await Promise.all(
    rows.map(async (row) => {
      try {
        await deliver(env, db, row);
        delivered.push(row.id);
      } catch (error) {
        const { id, kind, attempts } = row;
        log("warn", "delivery_failed", { id, kind, attempts, cause: describeError(error) });
      }
    }),
  );
  try {
    await deleteMessages(db, delivered);
  } catch (error) {
    // They are delivered once more then, which objects don't mind.
    log("warn", "outbox_not_cleared", { ids: delivered, cause: describeError(error) });
  }
  return delivered.length;
}

async function deliver(env: Env, db: Database, row: OutboxRow): Promise<void> {
  const { id, attempts } = row;
  switch (row.kind) {
    case "hostname":
      await publishRoute(env, row.payload);
      return;
    case "tunnel_retired": {
      const { tunnelId, why } = row.payload;
      await tunnelObject(env, tunnelId).retire(why);
      return;
    }
    case "tunnel_stopping": {
      const { tunnelId, stopping } = row.payload;
      await tunnelObject(env, tunnelId).setStopping(stopping);
      return;
    }
    case "tunnel_ends": {
      const { tunnelId, atMs } = row.payload;
      await tunnelObject(env, tunnelId).endBy(tunnelId, atMs);
      return;
    }
    case "tunnel_settings": {
      const { tunnelId, settings } = row.payload;
      await tunnelObject(env, tunnelId).publishSettings(settings);
      return;
    }
    case "tunnel_capturing": {
      const { tunnelId, capturing } = row.payload;
      await tunnelObject(env, tunnelId).publishCapturing(capturing);
      return;
    }
    case "tunnel_maintenance": {
      const { tunnelId, maintenance } = row.payload;
      await tunnelObject(env, tunnelId).setMaintenance(tunnelId, maintenance);
      return;
    }
    case "connection_ended": {
      const { tunnelId, agentId } = row.payload;
      await tunnelObject(env, tunnelId).endConnection(agentId);
      return;
    }
    case "tunnel_captures_cleared": {
      const { tunnelId, untilMs } = row.payload;
      await tunnelObject(env, tunnelId).clearCaptures(untilMs);
      return;
    }
    case "watching_ended": {
      const { orgId, whose } = row.payload;
      await organizationObject(env, orgId).endWatching(whose);
      return;
    }
    case "token_revoked": {
      const { tokenNonce, tunnelIds } = row.payload;
      await Promise.all(
        tunnelIds.map(async (id) => tunnelObject(env, id).revokeCredential(tokenNonce)),
      );
      return;
    }
    case "token_over_budget":
      await stopSpending(env, row.payload);
      return;
    case "custom_hostname":
      await agreeCustomHostname(env, db, row.payload.domain);
      return;
    case "receiver_settings": {
      const { receiverId, settings } = row.payload;
      await receiverObject(env, receiverId).publishSettings(settings);
      return;
    }
    case "receiver_retired":
      await receiverObject(env, row.payload.receiverId).retire();
      return;
    case "relay_revocation": {
      const { relayId, revocation } = row.payload;
      await relayObject(env, relayId).revoke(revocation);
      return;
    }
    case "subscription_end":
      await endSubscription(env, row.payload.subscriptionId);
      return;
    case "mail": {
      const outcome = await sendMail(env, configOf(env), row.payload.sealed);
      // It is over as well: asking again would only harm the name that we have with that server.
      if (outcome === "refused") log("warn", "mail_refused", { id, attempts });
    }
  }
}
