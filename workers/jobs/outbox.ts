/** The database whose changes deliver their outbox messages, and the retries of messages that were not delivered. */
import { waitUntil } from "cloudflare:workers";
import { log } from "../../shared/log.ts";
import type { Env } from "../env.ts";
import { describeError } from "../errors.ts";
import { MAIL_BATCH_ROWS, OUTBOX_BATCH_ROWS } from "../limits.ts";
import { connectDatabase, type Database, type Deliver } from "../store/database.ts";
import {
  claimDueMessages,
  deleteMessages,
  deleteOverdueMails,
  parkUndeliverable,
  saveErrors,
} from "../store/outbox.ts";
import type { OutboxRow } from "../store/outbox-messages.ts";
import * as delivery from "./delivery.ts";
import { isForObject, sendMessage } from "./outbox-handlers.ts";

/** @param caller the organization that calls, or the group of the address; by default the server itself. */
export function createDatabase(env: Env, caller?: string): Database {
  const deliver: Deliver = async (rows) => {
    const deps = getDeps(env, db);
    const forObjects: OutboxRow[] = [];
    const forServices: OutboxRow[] = [];
    for (const row of rows) (isForObject(row) ? forObjects : forServices).push(row);
    // A third-party service may be slow, and no response depends on it.
    waitUntil(delivery.deliverMessages(deps, forServices));
    // Only a change of thousands of rows has more messages; its answer does not wait for all of them.
    const first = forObjects.slice(0, OUTBOX_BATCH_ROWS);
    const delivered = await delivery.deliverMessages(deps, first);
    waitUntil(deliverInBatches(deps, forObjects.slice(OUTBOX_BATCH_ROWS)));
    return delivered === first.length;
  };
  const db: Database = connectDatabase(env, deliver, caller);
  return db;
}

export function retryOutbox(env: Env, db: Database): Promise<void> {
  return delivery.retryOutbox(getDeps(env, db), OUTBOX_BATCH_ROWS);
}

export function retryMails(env: Env, db: Database): Promise<void> {
  return delivery.retryMails(getDeps(env, db), MAIL_BATCH_ROWS);
}

async function deliverInBatches(deps: delivery.DeliveryDeps, rows: OutboxRow[]): Promise<void> {
  for (let at = 0; at < rows.length; at += OUTBOX_BATCH_ROWS) {
    await delivery.deliverMessages(deps, rows.slice(at, at + OUTBOX_BATCH_ROWS));
  }
}

function getDeps(env: Env, db: Database): delivery.RetryDeps {
  return {
    deliver: (row) => sendMessage(env, db, row),
    deleteMessages: (ids) => deleteMessages(db, ids),
    saveErrors: (failures) => saveErrors(db, failures),
    claimDueMessages: (which) => claimDueMessages(db, which),
    parkUndeliverable: () => parkUndeliverable(db),
    deleteOverdueMails: () => deleteOverdueMails(db),
    log,
    describeError,
  };
}
