/** Webhook receivers: where vendors post, and what they posted. */
import { z } from "zod";
import { Instant, Line, STORABLE } from "./scalars.ts";

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
  .regex(...STORABLE);

export const CreateReceiver = z.object({
  validator: Validator,
  secret: Secret,
  name: Line(RECEIVER_NAME_MAX_CHARS),
});

export const RotateReceiverSecret = z.object({
  secret: Secret,
  /** How long the secret before is accepted as well. */
  overlapHours: z
    .number()
    .min(0)
    .max(SECRET_OVERLAP_MAX_HOURS)
    .default(SECRET_OVERLAP_DEFAULT_HOURS),
});

export const Receiver = z.object({
  id: z.uuid(),
  name: z.string(),
  validator: Validator,
  /** Where the vendor posts. */
  url: z.string(),
  /** null: no earlier secret is accepted. */
  previousSecretUntil: Instant.nullable(),
  createdAt: Instant,
});
export type Receiver = z.infer<typeof Receiver>;

/** A place in the order of deliveries. Opaque to clients; `0` is before the first. */
const Cursor = z.string().regex(/^\d{1,15}$/, "must be a cursor of an earlier answer");

export const ReceiverState = Receiver.extend({
  /** Deliveries that are there to be read. */
  kept: z.int(),
  lastReceivedAt: Instant.nullable(),
  /** Up to here everything was handled, as somebody said. */
  acknowledged: Cursor,
});
export type ReceiverState = z.infer<typeof ReceiverState>;

export const Delivery = z.object({
  /** The vendor's own; one of ours where it gives none. */
  id: z.string(),
  receivedAt: Instant,
  headers: z.record(z.string(), z.string()),
  /** Base64 of the bytes that came. */
  body: z.string(),
  contentType: z.string().nullable(),
  /** Right behind this delivery. */
  cursor: Cursor,
});
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryPage = z.object({
  events: z.array(Delivery),
  /** For the next question's `after`. */
  cursor: Cursor,
});
export type DeliveryPage = z.infer<typeof DeliveryPage>;

export const DeliveryQuery = z.object({
  after: Cursor.default("0"),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(DELIVERIES_PAGE_MAX_ROWS)
    .default(DELIVERIES_PAGE_DEFAULT_ROWS),
  /** Seconds to wait for a delivery where there is none yet. */
  wait: z.coerce.number().min(0).max(LONG_POLL_MAX_SECONDS).default(0),
  /** Nothing that came earlier is in the answer. */
  since: z.iso.datetime({ offset: true }).optional(),
});

export const Acknowledgement = z.object({ cursor: Cursor });
