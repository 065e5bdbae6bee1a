/** How a message of each kind reaches its destination. All handlers are idempotent: a message may be sent again. */
import { getConfig } from "../config/config.ts";
import type { Env } from "../env.ts";
import { syncCustomHostname } from "../integrations/custom-hostnames.ts";
import { sendMail } from "../integrations/mail/mail.ts";
import { cancelSubscription } from "../integrations/payments/cancel-subscription.ts";
import { log } from "../../shared/log.ts";
import {
  directoryObject,
  organizationObject,
  receiverObject,
  relayObject,
  tunnelObject,
} from "../objects.ts";
import type { Database } from "../store/database.ts";
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

const HANDLERS: { [Kind in OutboxKind]: Handler<Kind> } = {
  hostname: { to: "object", send: publishRoute },
  tunnel_retired: {
    to: "object",
    send: (env, { tunnelId, why }) => tunnelObject(env, tunnelId).retire(why),
  },
  tunnel_stopping: {
    to: "object",
    send: (env, { tunnelId, stopping }) => tunnelObject(env, tunnelId).setStopState(stopping),
  },
  tunnel_ends: {
    to: "object",
    send: (env, { tunnelId, atMs }) => tunnelObject(env, tunnelId).scheduleExpiry(tunnelId, atMs),
  },
  tunnel_settings: {
    to: "object",
    send: (env, { tunnelId, settings }) =>
      tunnelObject(env, tunnelId).publishAccessSettings(settings),
  },
  tunnel_capturing: {
    to: "object",
    send: (env, { tunnelId, capturing }) =>
      tunnelObject(env, tunnelId).publishCaptureSettings(capturing),
  },
  tunnel_maintenance: {
    to: "object",
    send: (env, { tunnelId, maintenance }) =>
      tunnelObject(env, tunnelId).setMaintenance(tunnelId, maintenance),
  },
  tunnel_shards: {
    to: "object",
    send: (env, { tunnelId, count }) =>
      tunnelObject(env, tunnelId).setShards({ tunnelId, shard: 0 }, count),
  },
  tunnel_captures_cleared: {
    to: "object",
    send: (env, { tunnelId, untilMs }) => tunnelObject(env, tunnelId).clearCaptures(untilMs),
  },
  connection_ended: {
    to: "object",
    send: (env, { tunnelId, agentId }) => tunnelObject(env, tunnelId).disconnectAgent(agentId),
  },
  watching_ended: {
    to: "object",
    send: (env, { orgId, whose }) => organizationObject(env, orgId).closeWatchers(whose),
  },
  token_revoked: {
    to: "object",
    send: (env, { tokenNonce, tunnelIds }) =>
      Promise.all(tunnelIds.map(async (id) => tunnelObject(env, id).revokeToken(tokenNonce))),
  },
  token_over_budget: { to: "object", send: disconnectOverBudget },
  receiver_settings: {
    to: "object",
    async send(env, { receiverId, settings }) {
      await receiverObject(env, receiverId).publishSettings(settings);
      await directoryObject(env, receiverId).addReceiver(receiverId);
    },
  },
  receiver_retired: {
    to: "object",
    async send(env, { receiverId }) {
      await receiverObject(env, receiverId).retire();
      await directoryObject(env, receiverId).removeReceiver(receiverId);
    },
  },
  relay_revocation: {
    to: "object",
    send: (env, { relayId, revocation }) => relayObject(env, relayId).revoke(revocation),
  },
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

export function isForObject({ kind }: OutboxRow): boolean {
  return HANDLERS[kind].to === "object";
}

/** @throws Error when the message did not arrive in time. */
export async function sendMessage(env: Env, db: Database, row: OutboxRow): Promise<void> {
  const handler: Handler<OutboxKind> | undefined = HANDLERS[row.kind];
  // Written by a newer version that ran here before.
  if (!handler) throw new Error(`no handler for messages of kind ${String(row.kind)}`);
  const maxMs = handler.to === "object" ? OBJECT_CALL_MAX_MS : SERVICE_CALL_MAX_MS;
  await withTimeLimit(
    maxMs,
    Promise.resolve(handler.send(env, row.payload, { db, id: row.id, attempts: row.attempts })),
  );
}
