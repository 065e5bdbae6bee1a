/**
 * The messages that a committed change sends to objects, mailboxes and external services. This is the one list of kinds: the
 * handlers in `workers/jobs/outbox-handlers.ts` are typed by it, so that a kind without a handler does not compile.
 */
import type { AccessSettings } from "../../access/settings.ts";
import type { WatcherSelector } from "../../durable-objects/organization.ts";
import type { ReceiverSettings } from "../../durable-objects/receiver/settings.ts";
import type { StopState } from "../../durable-objects/tunnel/lifetime.ts";
import type { ShardCount } from "../../durable-objects/tunnel/shards/shards.ts";
import type { Maintenance } from "../../durable-objects/tunnel/proxy/access-policy.ts";
import type { Revocation } from "../../protocol/relay/link.ts";
import type { VersionedCaptureSettings } from "../../protocol/schemas/inspector/captures.ts";

export interface RouteChange {
  host: string;
  tunnelId: string | null;
  version: number;
  /** How many objects the tunnel's visitors are spread over. Absent: one. */
  shards?: number;
  /** The tunnel that the host led to before, if it still exists. */
  from?: string;
}

/** The agents of a token, at the tunnels that they serve. */
export interface TokenTunnels {
  tokenNonce: string;
  tunnelIds: string[];
}

export interface OutboxPayloads {
  hostname: RouteChange;
  tunnel_retired: { tunnelId: string; why?: "deleted" | "expired" };
  tunnel_stopping: { tunnelId: string; stopping: StopState };
  tunnel_ends: { tunnelId: string; atMs: number };
  tunnel_settings: { tunnelId: string; settings: AccessSettings };
  tunnel_capturing: { tunnelId: string; capturing: VersionedCaptureSettings };
  tunnel_maintenance: { tunnelId: string; maintenance: Maintenance };
  tunnel_shards: { tunnelId: string; count: ShardCount };
  /** Deletes requests that arrived before this time: a late delivery must not delete newer ones. */
  tunnel_captures_cleared: { tunnelId: string; untilMs: number };
  connection_ended: { tunnelId: string; agentId: string };
  watching_ended: { orgId: string; whose: WatcherSelector };
  token_revoked: TokenTunnels;
  token_over_budget: TokenTunnels;
  receiver_settings: { receiverId: string; settings: ReceiverSettings };
  receiver_retired: { receiverId: string };
  relay_revocation: { relayId: string; revocation: Revocation };
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
