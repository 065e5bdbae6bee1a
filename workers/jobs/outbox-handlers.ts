/**
 * How a message of each kind reaches its destination, if it is not in the list of `object-messages.ts`. All handlers are
 * idempotent: a message may be sent again.
 */
import { getConfig } from "../config/config.ts";
import type { Env } from "../env.ts";
import { syncCustomHostname } from "../integrations/custom-hostnames.ts";
import { sendMail } from "../integrations/mail/mail.ts";
import { cancelSubscription } from "../integrations/payments/cancel-subscription.ts";
import { log } from "../../shared/log.ts";
import type { Database } from "../store/database.ts";
import { OBJECT_MESSAGES, type ObjectPayloads } from "../store/object-messages.ts";
import type { OutboxKind, OutboxPayloads, OutboxRow } from "../store/outbox-messages.ts";
import { publishRoute, disconnectOverBudget } from "../store/tunnels/object-sync.ts";
import { withTimeLimit } from "./delivery.ts";

const OBJECT_CALL_MAX_MS = 10_000;
/** Below the outbox's lease, so that no other isolate delivers the mail a second time meanwhile. */
const SERVICE_CALL_MAX_MS = 28_000;

interface Handler<Kind extends OutboxKind> {
  /** `service`: a third-party service; responses of the API do not wait for it. */
  to: "object" | "service";
  send(env: Env, payload: OutboxPayloads[Kind], attempt: Attempt): Promise<unknown>;
}

interface Attempt {
  db: Database;
  id: number;
  attempts: number;
}

const OTHER_HANDLERS: { [Kind in Exclude<OutboxKind, keyof ObjectPayloads>]: Handler<Kind> } = {
  hostname: { to: "object", send: publishRoute },
  token_over_budget: { to: "object", send: disconnectOverBudget },
  subscription_end: {
    to: "service",
    send: (env, { subscriptionId }) => cancelSubscription(env, subscriptionId),
  },
  custom_hostname: {
    to: "service",
    send: (env, { domain }, { db }) => syncCustomHostname(env, db, domain),
  },
  mail: {
    to: "service",
    async send(env, { sealed }, { id, attempts }) {
      const outcome = await sendMail(env, getConfig(env), sealed);
      // Sending it again would only harm our reputation with that server.
      if (outcome === "refused") log("warn", "mail_refused", { id, attempts });
    },
  },
};

function isObjectKind(kind: OutboxKind): kind is keyof ObjectPayloads {
  return Object.hasOwn(OBJECT_MESSAGES, kind);
}

function findHandler(kind: OutboxKind): Handler<OutboxKind> | undefined {
  if (!isObjectKind(kind)) return OTHER_HANDLERS[kind];
  return { to: "object", send: OBJECT_MESSAGES[kind] };
}

export function isForObject({ kind }: OutboxRow): boolean {
  return findHandler(kind)?.to === "object";
}

/** @throws Error when the message did not arrive in time. */
export async function sendMessage(env: Env, db: Database, row: OutboxRow): Promise<void> {
  const handler = findHandler(row.kind);
  // Written by a newer version that ran here before.
  if (!handler) throw new Error(`no handler for messages of kind ${String(row.kind)}`);
  const maxMs = handler.to === "object" ? OBJECT_CALL_MAX_MS : SERVICE_CALL_MAX_MS;
  await withTimeLimit(
    maxMs,
    Promise.resolve(handler.send(env, row.payload, { db, id: row.id, attempts: row.attempts })),
  );
}
