/**
 * The messages that a committed change sends to objects, mailboxes and external services. Those that one object receives are
 * a list with their delivery in `object-messages.ts`. The handlers of the others, in `workers/jobs/outbox-handlers.ts`, are
 * typed by this list, so that a kind without a handler does not compile.
 */
import type { ObjectPayloads, TokenTunnels } from "./object-messages.ts";

export interface RouteChange {
  host: string;
  tunnelId: string | null;
  version: number;
  /** How many objects the tunnel's visitors are spread over. Absent: one. */
  shards?: number;
  /** The tunnel that the host led to before, if it still exists. */
  from?: string;
}

export interface OutboxPayloads extends ObjectPayloads {
  hostname: RouteChange;
  token_over_budget: TokenTunnels;
  /** Ends the subscription at the payment provider at once. */
  subscription_end: { subscriptionId: string };
  /** Makes the custom hostname at the provider agree with the domain's row. */
  custom_hostname: { domain: string };
  /** Encrypted: a mail carries codes, and rows end up in backups. */
  mail: { sealed: string };
}

export type OutboxKind = keyof OutboxPayloads;

export type OutboxMessage = {
  [Kind in OutboxKind]: { kind: Kind; payload: OutboxPayloads[Kind] };
}[OutboxKind];

export type OutboxRow = OutboxMessage & { id: number; attempts: number };
