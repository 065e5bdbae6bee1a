/** /webhook-receivers: the receivers of webhooks, and their deliveries. */
import { z } from "zod";
import type { StoredPage } from "../../../durable-objects/receiver.ts";
import type { StoredDelivery } from "../../../durable-objects/receiver/deliveries.ts";
import { RECEIVERS_PER_ORG_MAX } from "../../limits.ts";
import {
  Acknowledgement,
  CreateReceiver,
  DeliveryPage,
  DeliveryQuery,
  Receiver,
  ReceiverState,
  RotateReceiverSecret,
  type Delivery,
} from "../../../protocol/schemas/webhooks.ts";
import { IdParams, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { callObject } from "../../call-object.ts";
import type { Config } from "../../config/config.ts";
import { isDraining } from "../../draining.ts";
import { ApiError } from "../../errors.ts";
import { toBase64 } from "../../../shared/bytes.ts";
import { encryptWebhookSecret } from "../../identity/webhook-secrets.ts";
import { receiverObject } from "../../objects.ts";
import {
  createReceiver,
  deleteReceiver,
  findReceiver,
  listReceivers,
  rotateReceiverSecret,
  type ReceiverRow,
} from "../../store/webhooks/receivers.ts";
import {
  ACCEPTED_BEARERS,
  allow,
  allowReadOrAgent,
  allowOrAgent,
  authorizeMemberOrAgent,
  getOrgId,
  readAsCaller,
} from "../guard.ts";
import {
  createRouter,
  getMemberActor,
  jsonResponse,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";
import { HOUR_MS } from "../../../shared/time.ts";

/** How often a long poll checks whether the server is stopping or the client has disconnected. */
const LONG_POLL_CHECK_MS = 250;

export const receivers = createRouter();

receivers.openapi(
  route({
    operationId: "listReceivers",
    method: "get",
    path: "/webhook-receivers",
    summary: "List webhook receivers",
    description: ACCEPTED_BEARERS,
    guard: allowReadOrAgent("receivers:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("The receivers, newest first.", z.array(Receiver)) },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listReceivers(db, orgId, page));
    return c.json(
      rows.map((row) => toReceiver(c.var.config, row)),
      200,
    );
  },
);

receivers.openapi(
  route({
    operationId: "createReceiver",
    method: "post",
    path: "/webhook-receivers",
    summary: "Create a webhook receiver",
    guard: allow("receivers:write"),
    body: CreateReceiver,
    responses: {
      201: jsonResponse(
        "Created. Vendors can deliver to `url`. No response contains the secret.",
        Receiver,
      ),
    },
    failures: ["conflict"],
  }),
  async (c) => {
    const { name, validator, secret } = c.req.valid("json");
    const { config, db } = c.var;
    const encrypted = await encryptWebhookSecret(config, secret);
    const row = await createReceiver(db, getMemberActor(c), { name, validator, secret: encrypted });
    switch (row) {
      case "too_many":
        throw new ApiError(
          "conflict",
          `An organization can have at most ${RECEIVERS_PER_ORG_MAX} webhook receivers.`,
        );
      default:
        return c.json(toReceiver(config, row), 201);
    }
  },
);

receivers.openapi(
  route({
    operationId: "getReceiver",
    method: "get",
    path: "/webhook-receivers/{id}",
    summary: "Get a webhook receiver",
    description: ACCEPTED_BEARERS,
    guard: allowOrAgent("receivers:read"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "The receiver, with the number of stored deliveries and the last acknowledged cursor.",
        ReceiverState,
      ),
    },
    failures: ["unavailable"],
  }),
  async (c) => {
    const row = await requireReceiver(c, c.req.valid("param").id);
    const stats = await callObject(receiverObject(c.env, row.id).getStats());
    const state = {
      kept: stats.stored,
      lastReceivedAt: stats.lastReceivedAtMs === null ? null : toTimestamp(stats.lastReceivedAtMs),
      acknowledged: String(stats.acknowledged),
    };
    return c.json({ ...toReceiver(c.var.config, row), ...state }, 200);
  },
);

receivers.openapi(
  route({
    operationId: "deleteReceiver",
    method: "delete",
    path: "/webhook-receivers/{id}",
    summary: "Delete a webhook receiver",
    guard: allow("receivers:write"),
    params: IdParams,
    responses: { 200: jsonResponse("Deleted, with its deliveries.", Ok) },
  }),
  async (c) => {
    const isDeleted = await deleteReceiver(c.var.db, getMemberActor(c), c.req.valid("param").id);
    if (!isDeleted) throw notFound("webhook receiver");
    return c.json({ ok: true as const }, 200);
  },
);

receivers.openapi(
  route({
    operationId: "rotateReceiverSecret",
    method: "post",
    path: "/webhook-receivers/{id}/rotate",
    summary: "Rotate the secret of a webhook receiver",
    description: "The previous secret is accepted too, for `overlapHours`.",
    guard: allow("receivers:write"),
    params: IdParams,
    body: RotateReceiverSecret,
    responses: { 200: jsonResponse("The new secret is in force.", Receiver) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { config, db } = c.var;
    const { id } = c.req.valid("param");
    const { secret, overlapHours } = c.req.valid("json");
    const encrypted = await encryptWebhookSecret(config, secret);
    const overlapMs = Math.round(overlapHours * HOUR_MS);
    const rotation = await rotateReceiverSecret(db, getMemberActor(c), {
      id,
      secret: encrypted,
      overlapMs,
    });
    if (rotation === "not_found") throw notFound("webhook receiver");
    return c.json(toReceiver(config, rotation), 200);
  },
);

receivers.openapi(
  route({
    operationId: "listDeliveries",
    method: "get",
    path: "/webhook-receivers/{id}/events",
    summary: "List the deliveries to a webhook receiver",
    description: `In the order of their arrival. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("receivers:read"),
    params: IdParams,
    query: DeliveryQuery,
    responses: {
      200: jsonResponse(
        "The deliveries. Send `cursor` as `after` of the next request.",
        DeliveryPage,
      ),
    },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { after, limit, wait, since } = c.req.valid("query");
    const { id } = await requireReceiver(c, c.req.valid("param").id);
    const polling = callObject(
      receiverObject(c.env, id).listDeliveries({
        after: Number(after),
        limit,
        sinceMs: since === undefined ? 0 : Date.parse(since),
        waitMs: wait * 1000,
      }),
    );
    const { deliveries, end } =
      wait === 0 ? await polling : await endPollAtShutdown(c, Number(after), polling);
    // A caller whose access ended while it waited must not receive the deliveries.
    if (wait > 0 && deliveries.length > 0) await authorizeMemberOrAgent(c, "receivers:read");
    return c.json({ events: deliveries.map(toDelivery), cursor: String(end) }, 200);
  },
);

receivers.openapi(
  route({
    operationId: "acknowledgeDeliveries",
    method: "post",
    path: "/webhook-receivers/{id}/ack",
    summary: "Acknowledge deliveries up to a cursor",
    description: `The acknowledged cursor never moves back. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("receivers:write"),
    params: IdParams,
    body: Acknowledgement,
    responses: { 200: jsonResponse("The last acknowledged cursor.", Acknowledgement) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { id } = await requireReceiver(c, c.req.valid("param").id);
    const { cursor } = c.req.valid("json");
    const acknowledged = await callObject(receiverObject(c.env, id).acknowledge(Number(cursor)));
    return c.json({ cursor: String(acknowledged) }, 200);
  },
);

async function requireReceiver(c: ApiContext, id: string): Promise<ReceiverRow> {
  const row = await findReceiver(c.var.db, getOrgId(c), id);
  if (!row) throw notFound("webhook receiver");
  return row;
}

/** A long poll ends at once, with no deliveries, when the server is stopping or the client has disconnected. */
async function endPollAtShutdown(
  c: ApiContext,
  after: number,
  polling: Promise<StoredPage>,
): Promise<StoredPage> {
  if (isDraining())
    throw new ApiError("unavailable", "The server is restarting. Try again.", {
      retryAfterSeconds: 1,
    });
  const { promise: ended, resolve } = Promise.withResolvers<StoredPage>();
  const check = setInterval(() => {
    if (isDraining() || c.req.raw.signal.aborted) resolve({ deliveries: [], end: after });
  }, LONG_POLL_CHECK_MS);
  try {
    return await Promise.race([polling, ended]);
  } finally {
    clearInterval(check);
    // The call goes on until the request ends, and its failure concerns no one.
    polling.catch(() => undefined);
  }
}

function toReceiver(config: Config, row: ReceiverRow): Receiver {
  const { id, name, validator, previousSecretUntil: until, createdAt } = row;
  return {
    id,
    name,
    validator,
    url: `${config.publicOrigin}/hooks/${id}`,
    previousSecretUntil: until && until > new Date() ? until.toISOString() : null,
    createdAt: createdAt.toISOString(),
  };
}

function toDelivery({
  id,
  receivedAtMs,
  headers,
  body,
  contentType,
  position,
}: StoredDelivery): Delivery {
  return {
    id,
    receivedAt: toTimestamp(receivedAtMs),
    headers,
    body: toBase64(body),
    contentType,
    cursor: String(position),
  };
}

function toTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}
