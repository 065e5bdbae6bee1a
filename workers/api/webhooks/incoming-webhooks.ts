/**
 * POST /hooks/{id}: vendors send webhooks here. Requests to known receivers need no database: the directory says which
 * receivers exist, the receiver's object stores the settings, and the isolate caches them. A delivery that is answered
 * with 200 has been written to disk.
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
import { z } from "zod";
import { isForwarded } from "../../../protocol/header-names.ts";
import { IdParams, Ok } from "../../../protocol/schemas/scalars.ts";
import { callObject } from "../../call-object.ts";
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { ApiError } from "../../errors.ts";
import { decryptWebhookSecret } from "../../identity/webhook-secrets.ts";
import { directoryObject, receiverObject } from "../../objects.ts";
import { createRouter, documentRoute, jsonResponse, notFound, type ApiContext } from "../route.ts";
import { BoundedMap } from "../../../shared/bounds/bounded-map.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** Receivers whose settings an isolate caches. */
const RECEIVERS_CACHE_MAX = 1_000;
/** When a vendor should retry a delivery to a receiver that is full. */
const RECEIVER_FULL_RETRY_MS = MINUTE_MS;

export const incomingWebhooks = createRouter();

documentRoute(incomingWebhooks, {
  operationId: "deliverWebhook",
  method: "post",
  path: "/hooks/{id}",
  summary: "Deliver a webhook",
  description:
    "Any body of at most 1 MiB, signed as the receiver's validator requires (docs/webhooks.md). A delivery whose id is repeated is answered in the same way and stored only once.",
  params: IdParams,
  rawBody: "*/*",
  responses: {
    200: jsonResponse(
      "Stored durably. For `chat_app` the response has no body, or is the challenge.",
      z.union([Ok, z.object({ challenge: z.string() })]),
    ),
  },
  failures: ["unauthorized", "rate_limited", "unavailable"],
});

incomingWebhooks.post("/hooks/:id", async (c) => {
  const { success, data } = IdParams.safeParse(c.req.param());
  if (!success) throw notFound("webhook receiver");
  const body = new Uint8Array(await c.req.arrayBuffer());
  return receive(c, data.id, { headers: c.req.raw.headers, body });
});

/** Verifies the deliveries to a receiver. */
interface Verifier {
  settings: ReceiverSettings;
  /** The key of each secret, by the encrypted secret. */
  keys: Map<string, CryptoKey>;
}

/** A cache of the isolate. An entry can be stale: the object detects that before it stores a delivery. */
const verifiers = new BoundedMap<string, Verifier>(RECEIVERS_CACHE_MAX);

async function receive(c: ApiContext, id: string, signed: SignedRequest): Promise<Response> {
  const { env } = c;
  const cached = verifiers.get(id);
  let verifier = cached ?? (await loadVerifier(c, id));
  if (!(await hasValidSignature(verifier, signed))) {
    const newest = cached ? await loadVerifier(c, id) : verifier;
    const isSame = newest.settings.version === verifier.settings.version;
    if (isSame || !(await hasValidSignature(newest, signed))) throw invalidSignature();
    verifier = newest;
  }
  const { validator } = verifier.settings;
  const challenge = readChallenge(validator, signed);
  if (challenge !== null) return c.json({ challenge }, 200);

  const delivery = await toIncomingDelivery(verifier, signed);
  const store = ({ settings: { version } }: Verifier) =>
    callObject<StoreOutcome>(receiverObject(env, id).store(delivery, version));
  let answer = await store(verifier);
  if (answer.outcome === "outdated") {
    verifier = await cacheVerifier(c.var.config, id, answer.settings);
    if (!(await hasValidSignature(verifier, signed))) throw invalidSignature();
    answer = await store(verifier);
  }
  requireStored(id, answer);
  // A chat app shows the response to a command or a dialog to the user, so the response is empty.
  return validator === "chat_app" ? c.body(null, 200) : c.json({ ok: true as const }, 200);
}

function requireStored(id: string, answer: StoreOutcome): void {
  switch (answer.outcome) {
    case "stored":
    case "duplicate":
      return;
    case "rate_limited":
      throw new ApiError(
        "rate_limited",
        "This receiver has received too many deliveries. Try again later.",
        {
          retryAfterSeconds: Math.ceil(answer.waitMs / 1000),
        },
      );
    case "full":
      throw new ApiError(
        "unavailable",
        "This receiver is full. Acknowledge its deliveries to make room.",
        {
          retryAfterSeconds: RECEIVER_FULL_RETRY_MS / 1000,
        },
      );
    case "low_disk":
      throw new ApiError(
        "unavailable",
        "The disk of this server is almost full, so that it can't store this delivery. Send it again later.",
        {
          retryAfterSeconds: RECEIVER_FULL_RETRY_MS / 1000,
        },
      );
    case "outdated":
      throw new ApiError(
        "unavailable",
        "The settings of this receiver are changing. Send the delivery again.",
        {
          retryAfterSeconds: 1,
        },
      );
    case "gone":
      verifiers.delete(id);
      throw notFound("webhook receiver");
  }
}

function invalidSignature(): ApiError {
  return new ApiError("unauthorized", "The signature is missing, wrong or too old.");
}

async function loadVerifier(c: ApiContext, id: string): Promise<Verifier> {
  const settings = await findSettings(c.env, id);
  if (!settings) {
    verifiers.delete(id);
    throw notFound("webhook receiver");
  }
  return cacheVerifier(c.var.config, id, settings);
}

/** A call to an object creates it, so the directory is asked first whether the receiver exists. */
async function findSettings(env: Env, id: string): Promise<ReceiverSettings | null> {
  const isKnown =
    verifiers.has(id) ||
    (await callObject<boolean | "busy">(directoryObject(env, id).hasReceiver(id)));
  if (isKnown === "busy") {
    throw new ApiError(
      "unavailable",
      "Too many unknown receivers are being looked up. Send the delivery again.",
      { retryAfterSeconds: 1 },
    );
  }
  return isKnown ? callObject(receiverObject(env, id).getSettings()) : null;
}

async function cacheVerifier(
  config: Config,
  id: string,
  settings: ReceiverSettings,
): Promise<Verifier> {
  const keys = new Map<string, CryptoKey>();
  for (const { sealed } of settings.secrets) {
    keys.set(sealed, await importSecret(await decryptWebhookSecret(config, sealed)));
  }
  const verifier = { settings, keys };
  verifiers.set(id, verifier);
  return verifier;
}

function hasValidSignature({ settings, keys }: Verifier, signed: SignedRequest): Promise<boolean> {
  const now = Date.now();
  const activeKeys = getActiveSecrets(settings, now).map((sealed) => keys.get(sealed)!);
  return isSignatureValid(settings.validator, activeKeys, signed, now);
}

async function toIncomingDelivery(
  { settings }: Verifier,
  { headers, body }: SignedRequest,
): Promise<IncomingDelivery> {
  return {
    id: await readDeliveryId(settings.validator, { headers, body }),
    headers: Object.fromEntries([...headers].filter(([name]) => isForwarded(name))),
    contentType: headers.get("content-type"),
    body,
  };
}
