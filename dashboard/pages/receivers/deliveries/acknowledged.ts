import type { Delivery, ReceiverState } from "../../../../protocol/schemas/webhooks.ts";

/** Whether your server has this delivery. Cursors are numbers that grow with each delivery. */
export function isAcknowledged(
  { acknowledged }: Pick<ReceiverState, "acknowledged">,
  { cursor }: Pick<Delivery, "cursor">,
): boolean {
  return Number(cursor) <= Number(acknowledged);
}
