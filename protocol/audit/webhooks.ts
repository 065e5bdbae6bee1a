/** Audit actions of webhook receivers. */
import type { ActionDescription } from "./action-description.ts";

export const WEBHOOK_ACTIONS = {
  receiver_created: {
    resource: "receiver",
    predicate: "created the webhook receiver {it}",
    description: "The webhook receiver was created.",
  },
  receiver_rotated: {
    resource: "receiver",
    predicate: "changed the secret of the webhook receiver {it}",
    description: "The receiver has a new secret.",
  },
  receiver_deleted: {
    resource: "receiver",
    predicate: "deleted the webhook receiver {it}",
    description: "The webhook receiver was deleted.",
  },
} as const satisfies Record<string, ActionDescription>;
