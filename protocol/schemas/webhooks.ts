/** Webhook receivers, and the deliveries that vendors post to them. */
import { z } from "zod";
import {
  DecimalTextOr,
  Instant,
  NumberTextOr,
  STORABLE_RULE,
  TypedInstant,
  VisibleLine,
} from "./scalars.ts";

const DELIVERIES_PAGE_DEFAULT_ROWS = 100;
const DELIVERIES_PAGE_MAX_ROWS = 1_000;
const LONG_POLL_MAX_SECONDS = 30;
const RECEIVER_NAME_MAX_CHARS = 100;
const WEBHOOK_SECRET_MAX_CHARS = 1_000;
const SECRET_OVERLAP_DEFAULT_HOURS = 24;
const SECRET_OVERLAP_MAX_HOURS = 7 * 24;

/** How a vendor signs: as GitHub, Slack and Stripe do, or `X-Signature-256: sha256=<hex>`. */
export const Validator = z.enum(["code_host", "chat_app", "payments", "generic_hmac_sha256"]);
export type Validator = z.infer<typeof Validator>;

const Secret = z
  .string()
  .min(1)
  .max(WEBHOOK_SECRET_MAX_CHARS)
  .regex(...STORABLE_RULE);

export const CreateReceiver = z.object({
  validator: Validator,
  secret: Secret,
  name: VisibleLine(RECEIVER_NAME_MAX_CHARS),
});

export const RotateReceiverSecret = z.object({
  secret: Secret,
  overlapHours: z
    .number()
    .min(0)
    .max(SECRET_OVERLAP_MAX_HOURS)
    .default(SECRET_OVERLAP_DEFAULT_HOURS)
    .describe("How long the previous secret is accepted as well."),
});

export const Receiver = z.object({
  id: z.uuid(),
  name: z.string(),
  validator: Validator,
  url: z.string().describe("The URL that the vendor posts to."),
  previousSecretUntil: Instant.nullable().describe("null: no previous secret is accepted."),
  createdAt: Instant,
});
export type Receiver = z.infer<typeof Receiver>;

/** A position in the sequence of deliveries. Opaque to clients; `0` is before the first. */
const Cursor = z.string().regex(/^\d{1,15}$/, "must be a cursor from an earlier response");

export const ReceiverState = Receiver.extend({
  kept: z.int().describe("The number of stored deliveries."),
  lastReceivedAt: Instant.nullable(),
  acknowledged: Cursor.describe("All deliveries up to here have been acknowledged."),
});
export type ReceiverState = z.infer<typeof ReceiverState>;

export const Delivery = z.object({
  id: z.string().describe("The vendor's id, or one of ours when it sends none."),
  receivedAt: Instant,
  headers: z.record(z.string(), z.string()),
  body: z.string().describe("Base64 of the received bytes."),
  contentType: z.string().nullable(),
  cursor: Cursor.describe("The position just after this delivery."),
});
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryPage = z.object({
  events: z.array(Delivery),
  cursor: Cursor.describe("The `after` of the next request."),
});
export type DeliveryPage = z.infer<typeof DeliveryPage>;

export const DeliveryQuery = z.object({
  after: Cursor.default("0"),
  limit: NumberTextOr(DELIVERIES_PAGE_DEFAULT_ROWS, 1, DELIVERIES_PAGE_MAX_ROWS),
  wait: DecimalTextOr(0, 0, LONG_POLL_MAX_SECONDS).describe(
    "Seconds to wait for a delivery when there is none yet.",
  ),
  since: TypedInstant.optional().describe("Earlier deliveries are not returned."),
});

export const Acknowledgement = z.object({ cursor: Cursor });
