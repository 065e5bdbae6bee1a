import type { Delivery, ReceiverState } from "../../../../protocol/schemas/webhooks.ts";

/**
 * Whether a client has acknowledged this delivery. An acknowledgement covers all deliveries up to its cursor, and cursors are
 * numbers that grow with each delivery.
 */
export function isAcknowledged(
  { acknowledged }: Pick<ReceiverState, "acknowledged">,
  { cursor }: Pick<Delivery, "cursor">,
): boolean {
  return Number(cursor) <= Number(acknowledged);
}
