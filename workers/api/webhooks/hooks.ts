/**
 * POST /hooks/{id}: where vendors deliver. No database is in its way: the receiver's object knows what it
 * must know, and this isolate remembers it. A delivery that is answered with 200 is on disk.
 */
import type { IncomingDelivery, StoreOutcome } from "../../../durable-objects/receiver.ts";
import { readChallenge, readDeliveryId } from "../../../durable-objects/receiver/payload.ts";
import {
  getActiveSecrets,
  type ReceiverSettings,
} from "../../../durable-objects/receiver/settings.ts";
import {
  importSecret,
  isSignatureValid,
  type SignedRequest,
} from "../../../durable-objects/receiver/signatures.ts";
import { isForwarded } from "../../../protocol/header-names.ts";
import { Id, Ok } from "../../../protocol/schemas/scalars.ts";
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { ApiError } from "../../errors.ts";
import { openWebhookSecret } from "../../identity/webhook-secrets.ts";
import { receiverObject } from "../../objects.ts";
import { answer, failures, newArea, notFound, type ApiContext } from "../route.ts";

/** Receivers whose settings an isolate remembers. */
const RECEIVERS_CACHE_MAX = 1_000;
/** When to come back to a receiver that is full. */
const RECEIVER_FULL_RETRY_MS = 60_000;

export const hooks = newArea();

hooks.openAPIRegistry.registerPath({
  method: "post",
  path: "/hooks/{id}",
  summary: "A vendor delivers",
  description:
    "Any body of at most 1 MiB, signed as the receiver's validator says (docs/webhooks.md). A repeated delivery id is answered the same, and kept once.",
  request: { params: Id },
  responses: {
    200: answer("Kept, durably. For `chat_app` without a body, or the challenge.", Ok),
    ...failures("unauthorized", "not_found", "payload_too_large", "rate_limited", "unavailable"),
  },
});

hooks.post("/hooks/:id", async (c) => {
  const { success, data } = Id.safeParse(c.req.param());
  if (!success) throw notFound("such receiver");
  const body = new Uint8Array(await c.req.arrayBuffer());
  return receive(c, data.id.toLowerCase(), { headers: c.req.raw.headers, body });
});

/** What a delivery is judged by. */
interface Judge {
  settings: ReceiverSettings;
  /** Of each secret, by its sealed text. */
  keys: Map<string, CryptoKey>;
}

/** Per isolate. What is in it can be old: the object says so before it keeps anything. */
const judges = new Map<string, Judge>();

async function receive(c: ApiContext, id: string, signed: SignedRequest): Promise<Response> {
  const { env } = c;
  const remembered = judges.get(id);
  let judge = remembered ?? (await askForJudge(c, id));
  if (!(await isGenuine(judge, signed))) {
    const newest = remembered ? await askForJudge(c, id) : judge;
    const isSame = newest.settings.version === judge.settings.version;
    if (isSame || !(await isGenuine(newest, signed))) throw badSignature();
    judge = newest;
  }
  const { validator } = judge.settings;
  const challenge = readChallenge(validator, signed);
  if (challenge !== null) return c.json({ challenge }, 200);

  const arrival = arrivalOf(judge, signed);
  let taken = await receiverObject(env, id).store(arrival, judge.settings.version);
  if (taken.outcome === "outdated") {
    judge = await remember(c.var.config, id, taken.settings);
    if (!(await isGenuine(judge, signed))) throw badSignature();
    taken = await receiverObject(env, id).store(arrival, judge.settings.version);
  }
  requireTaken(id, taken);
  // What is answered to a command or a dialog is shown to whoever sent it: nothing is meant to be.
  return validator === "chat_app" ? c.body(null, 200) : c.json({ ok: true as const }, 200);
}

function requireTaken(id: string, taken: StoreOutcome): void {
  switch (taken.outcome) {
    case "kept":
    case "repeated":
      return;
    case "rate_limited":
      throw new ApiError("rate_limited", "This receiver gets too many deliveries.", {
        retryAfterSeconds: Math.ceil(taken.waitMs / 1000),
      });
    case "full":
      throw new ApiError(
        "unavailable",
        "This receiver is full of deliveries that nobody has read.",
        {
          retryAfterSeconds: RECEIVER_FULL_RETRY_MS / 1000,
        },
      );
    case "outdated":
      throw new ApiError("unavailable", "This receiver is being changed. Deliver again.", {
        retryAfterSeconds: 1,
      });
    case "gone":
      judges.delete(id);
      throw notFound("such receiver");
  }
}

function badSignature(): ApiError {
  return new ApiError("unauthorized", "The signature is missing, wrong or too old.");
}

async function askForJudge(c: ApiContext, id: string): Promise<Judge> {
  const settings = await settingsOf(c.env, id);
  if (!settings) {
    judges.delete(id);
    throw notFound("such receiver");
  }
  return remember(c.var.config, id, settings);
}

function settingsOf(env: Env, id: string): Promise<ReceiverSettings | null> {
  return receiverObject(env, id).getSettings();
}

async function remember(config: Config, id: string, settings: ReceiverSettings): Promise<Judge> {
  const keys = new Map<string, CryptoKey>();
  for (const { sealed } of settings.secrets) {
    keys.set(sealed, await importSecret(await openWebhookSecret(config, sealed)));
  }
  if (judges.size >= RECEIVERS_CACHE_MAX) judges.clear();
  const judge = { settings, keys };
  judges.set(id, judge);
  return judge;
}

function isGenuine({ settings, keys }: Judge, signed: SignedRequest): Promise<boolean> {
  const now = Date.now();
  const inForce = getActiveSecrets(settings, now).map((sealed) => keys.get(sealed)!);
  return isSignatureValid(settings.validator, inForce, signed, now);
}

function arrivalOf({ settings }: Judge, { headers, body }: SignedRequest): IncomingDelivery {
  return {
    id: readDeliveryId(settings.validator, { headers, body }),
    headers: Object.fromEntries([...headers].filter(([name]) => isForwarded(name))),
    contentType: headers.get("content-type"),
    body,
  };
}
