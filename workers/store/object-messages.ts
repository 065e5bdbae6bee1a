/**
 * The messages that a committed change sends to objects, each with its delivery: the type of a message's payload is that of
 * its function's parameter. All of them are idempotent, because a message may be sent again.
 */
import type { AccessSettings } from "../../access/settings.ts";
import type { WatcherSelector } from "../../durable-objects/organization.ts";
import type { ReceiverSettings } from "../../durable-objects/receiver/settings.ts";
import type { StopState } from "../../durable-objects/tunnel/lifetime.ts";
import type { Maintenance } from "../../durable-objects/tunnel/proxy/access-policy.ts";
import type { ShardCount } from "../../durable-objects/tunnel/shards/shards.ts";
import type { Revocation } from "../../protocol/relay/link.ts";
import type { VersionedCaptureSettings } from "../../protocol/schemas/inspector/captures.ts";
import { inParallel } from "../../shared/in-parallel.ts";
import type { Env } from "../env.ts";
import {
  directoryObject,
  organizationObject,
  receiverObject,
  relayObject,
  tunnelObject,
} from "../objects.ts";

/** The calls that one message makes at the same time. Many messages are delivered at once. */
const CALLS_AT_ONCE = 10;

type ToTunnel<Payload = unknown> = { tunnelId: string } & Payload;

/** The agents of a token, at the tunnels that they serve. */
export interface TokenTunnels {
  tokenNonce: string;
  tunnelIds: string[];
}

/** The clients of tokens, at the tunnels that they could be connected to. */
export interface TokenClients {
  tokenNonces: string[];
  tunnelIds: string[];
}

export const OBJECT_MESSAGES = {
  tunnel_retired: (env: Env, { tunnelId, why }: ToTunnel<{ why?: "deleted" | "expired" }>) =>
    tunnelObject(env, tunnelId).retire(why),
  tunnel_stopping: (env: Env, { tunnelId, stopping }: ToTunnel<{ stopping: StopState }>) =>
    tunnelObject(env, tunnelId).setStopState(stopping),
  tunnel_ends: (env: Env, { tunnelId, atMs }: ToTunnel<{ atMs: number }>) =>
    tunnelObject(env, tunnelId).scheduleExpiry(tunnelId, atMs),
  tunnel_settings: (env: Env, { tunnelId, settings }: ToTunnel<{ settings: AccessSettings }>) =>
    tunnelObject(env, tunnelId).publishAccessSettings(settings),
  tunnel_capturing: (
    env: Env,
    { tunnelId, capturing }: ToTunnel<{ capturing: VersionedCaptureSettings }>,
  ) => tunnelObject(env, tunnelId).publishCaptureSettings(capturing),
  tunnel_maintenance: (
    env: Env,
    { tunnelId, maintenance }: ToTunnel<{ maintenance: Maintenance }>,
  ) => tunnelObject(env, tunnelId).setMaintenance(tunnelId, maintenance),
  tunnel_shards: (env: Env, { tunnelId, count }: ToTunnel<{ count: ShardCount }>) =>
    tunnelObject(env, tunnelId).setShards({ tunnelId, shard: 0 }, count),
  /** Deletes requests that arrived before this time: a late delivery must not delete newer ones. */
  tunnel_captures_cleared: (env: Env, { tunnelId, untilMs }: ToTunnel<{ untilMs: number }>) =>
    tunnelObject(env, tunnelId).clearCaptures(untilMs),
  connection_ended: (env: Env, { tunnelId, agentId }: ToTunnel<{ agentId: string }>) =>
    tunnelObject(env, tunnelId).disconnectAgent(agentId),
  watching_ended: (env: Env, { orgId, whose }: { orgId: string; whose: WatcherSelector }) =>
    organizationObject(env, orgId).closeWatchers(whose),
  token_revoked: (env: Env, { tokenNonce, tunnelIds }: TokenTunnels) =>
    Promise.all(tunnelIds.map(async (id) => tunnelObject(env, id).revokeToken(tokenNonce))),
  clients_revoked: (env: Env, { tokenNonces, tunnelIds }: TokenClients) =>
    inParallel(CALLS_AT_ONCE, tunnelIds, (id) =>
      tunnelObject(env, id).disconnectClients(tokenNonces),
    ),
  async receiver_settings(
    env: Env,
    { receiverId, settings }: { receiverId: string; settings: ReceiverSettings },
  ) {
    await receiverObject(env, receiverId).publishSettings(settings);
    await directoryObject(env, receiverId).addReceiver(receiverId);
  },
  async receiver_retired(env: Env, { receiverId }: { receiverId: string }) {
    await receiverObject(env, receiverId).retire();
    await directoryObject(env, receiverId).removeReceiver(receiverId);
  },
  relay_revocation: (
    env: Env,
    { relayId, revocation }: { relayId: string; revocation: Revocation },
  ) => relayObject(env, relayId).revoke(revocation),
};

export type ObjectPayloads = {
  [Kind in keyof typeof OBJECT_MESSAGES]: Parameters<(typeof OBJECT_MESSAGES)[Kind]>[1];
};
