/** /webhook-receivers: where vendors deliver, and what they delivered. */
import { z } from "zod";
import type { StoredDelivery } from "../../../durable-objects/receiver/deliveries.ts";
import { RECEIVERS_MAX } from "../../limits.ts";
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
import { Id, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import type { Config } from "../../config/config.ts";
import { isDraining } from "../../draining.ts";
import { ApiError } from "../../errors.ts";
import { toBase64 } from "../../../shared/bytes.ts";
import { sealWebhookSecret } from "../../identity/webhook-secrets.ts";
import { receiverObject } from "../../objects.ts";
import {
  createReceiver,
  deleteReceiver,
  findReceiver,
  listReceivers,
  rotateReceiverSecret,
  type ReceiverRow,
} from "../../store/webhooks/receivers.ts";
import { allow, allowOrAgent, getOrgId, authorizeMemberOrAgent } from "../guard.ts";
import {
  getMemberActor,
  jsonResponse,
  createRouter,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";

/** How soon a waiting reader notices that the server stops, or that its client is gone. */
const LONG_POLL_CHECK_MS = 250;

export const receivers = createRouter();

const FOR_AGENTS =
  "The bearer is an access token, or a capability token that is confined to nothing.";

receivers.openapi(
  route({
    method: "get",
    path: "/webhook-receivers",
    summary: "List webhook receivers",
    description: FOR_AGENTS,
    guard: allowOrAgent("receivers:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("Newest first.", z.array(Receiver)) },
  }),
  async (c) => {
    const rows = await listReceivers(c.var.db, getOrgId(c), c.req.valid("query"));
    return c.json(
      rows.map((row) => toReceiver(c.var.config, row)),
      200,
    );
  },
);

receivers.openapi(
  route({
    method: "post",
    path: "/webhook-receivers",
    summary: "Make a webhook receiver",
    guard: allow("receivers:write"),
    body: CreateReceiver,
    responses: {
      201: jsonResponse("Vendors can deliver to `url`. The secret is shown to nobody.", Receiver),
    },
    failures: ["conflict"],
  }),
  async (c) => {
    const { name, validator, secret } = c.req.valid("json");
    const { config, db } = c.var;
    const sealed = await sealWebhookSecret(config, secret);
    const row = await createReceiver(db, getMemberActor(c), { name, validator, secret: sealed });
    switch (row) {
      case "too_many":
        throw new ApiError("conflict", `An organization has at most ${RECEIVERS_MAX} receivers.`);
      default:
        return c.json(toReceiver(config, row), 201);
    }
  },
);

receivers.openapi(
  route({
    method: "get",
    path: "/webhook-receivers/{id}",
    summary: "A webhook receiver",
    description: FOR_AGENTS,
    guard: allowOrAgent("receivers:read"),
    params: Id,
    responses: {
      200: jsonResponse("With how far its deliveries are acknowledged.", ReceiverState),
    },
  }),
  async (c) => {
    const row = await requireReceiver(c, c.req.valid("param").id);
    const news = await receiverObject(c.env, row.id).getStats();
    const state = {
      kept: news.stored,
      lastReceivedAt: news.lastReceivedAtMs === null ? null : toTimestamp(news.lastReceivedAtMs),
      acknowledged: String(news.acknowledged),
    };
    return c.json({ ...toReceiver(c.var.config, row), ...state }, 200);
  },
);

receivers.openapi(
  route({
    method: "delete",
    path: "/webhook-receivers/{id}",
    summary: "Delete a webhook receiver",
    guard: allow("receivers:write"),
    params: Id,
    responses: { 200: jsonResponse("Its deliveries are deleted too.", Ok) },
  }),
  async (c) => {
    const isDeleted = await deleteReceiver(c.var.db, getMemberActor(c), c.req.valid("param").id);
    if (!isDeleted) throw notFound("such receiver");
    return c.json({ ok: true as const }, 200);
  },
);

receivers.openapi(
  route({
    method: "post",
    path: "/webhook-receivers/{id}/rotate",
    summary: "Give a webhook receiver another secret",
    description: "The one before is accepted as well, for `overlapHours`.",
    guard: allow("receivers:write"),
    params: Id,
    body: RotateReceiverSecret,
    responses: { 200: jsonResponse("In force.", Receiver) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { config, db } = c.var;
    const { id } = c.req.valid("param");
    const { secret, overlapHours } = c.req.valid("json");
    const sealed = await sealWebhookSecret(config, secret);
    const overlapMs = Math.round(overlapHours * 3600_000);
    const rotation = await rotateReceiverSecret(db, getMemberActor(c), {
      id,
      secret: sealed,
      overlapMs,
    });
    if (rotation === "not_found") throw notFound("such receiver");
    return c.json(toReceiver(config, rotation), 200);
  },
);

receivers.openapi(
  route({
    method: "get",
    path: "/webhook-receivers/{id}/events",
    summary: "Read what was delivered",
    description: `In the order in which it came. ${FOR_AGENTS}`,
    guard: allowOrAgent("receivers:read"),
    params: Id,
    query: DeliveryQuery,
    responses: { 200: jsonResponse("`cursor` is the next question's `after`.", DeliveryPage) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { after, limit, wait, since } = c.req.valid("query");
    const { id } = await requireReceiver(c, c.req.valid("param").id);
    const asked = receiverObject(c.env, id).listDeliveries({
      after: Number(after),
      limit,
      sinceMs: since === undefined ? 0 : Date.parse(since),
      waitMs: wait * 1000,
    });
    const kept = wait === 0 ? await asked : await orEmptyAtShutdown(c, asked);
    // Whoever was signed out or sent away while waiting is not told what came since.
    if (wait > 0 && kept.length > 0) await authorizeMemberOrAgent(c, "receivers:read");
    const cursor = kept.at(-1)?.position;
    return c.json(
      { events: kept.map(toDelivery), cursor: cursor === undefined ? after : String(cursor) },
      200,
    );
  },
);

receivers.openapi(
  route({
    method: "post",
    path: "/webhook-receivers/{id}/ack",
    summary: "Say up to where deliveries are handled",
    description: `It only ever moves on. ${FOR_AGENTS}`,
    guard: allowOrAgent("receivers:write"),
    params: Id,
    body: Acknowledgement,
    responses: { 200: jsonResponse("Up to where they are by now.", Acknowledgement) },
  }),
  async (c) => {
    const { id } = await requireReceiver(c, c.req.valid("param").id);
    const { cursor } = c.req.valid("json");
    const acknowledged = await receiverObject(c.env, id).acknowledge(Number(cursor));
    return c.json({ cursor: String(acknowledged) }, 200);
  },
);

async function requireReceiver(c: ApiContext, id: string): Promise<ReceiverRow> {
  const row = await findReceiver(c.var.db, getOrgId(c), id);
  if (!row) throw notFound("such receiver");
  return row;
}

/** A reader who waits is answered at once, with nothing, when the server stops or the client is gone. */
async function orEmptyAtShutdown(
  c: ApiContext,
  asked: Promise<StoredDelivery[]>,
): Promise<StoredDelivery[]> {
  if (isDraining())
    throw new ApiError("unavailable", "The server restarts.", { retryAfterSeconds: 1 });
  const { promise: ended, resolve } = Promise.withResolvers<StoredDelivery[]>();
  const check = setInterval(() => {
    if (isDraining() || c.req.raw.signal.aborted) resolve([]);
  }, LONG_POLL_CHECK_MS);
  try {
    return await Promise.race([asked, ended]);
  } finally {
    clearInterval(check);
    // The question is dropped with this request; nobody hears how it ended.
    asked.catch(() => undefined);
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
