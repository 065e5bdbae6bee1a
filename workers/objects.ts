/** The stubs of Durable Objects: the only place where their names are formed. */
import type { RateLimiter } from "../durable-objects/rate-limiter.ts";
import type { Directory } from "../durable-objects/directory.ts";
import type { Organization } from "../durable-objects/organization.ts";
import type { Receiver } from "../durable-objects/receiver.ts";
import type { Relay } from "../durable-objects/relay.ts";
import type { Tunnel } from "../durable-objects/tunnel.ts";
import type { Env } from "./env.ts";
import { BoundedMap } from "../shared/bounds/bounded-map.ts";

/** An id is a hash of the name, computed once for each object of a tunnel that an isolate serves. */
const tunnelIds = new BoundedMap<string, DurableObjectId>(10_000);

/** @param name a tunnel's id, for its first object, or the name of another one (`toObjectName`). */
export function tunnelObject(env: Env, name: string): DurableObjectStub<Tunnel> {
  let id = tunnelIds.get(name);
  if (id === undefined) {
    id = env.TUNNEL.idFromName(name);
    tunnelIds.set(name, id);
  }
  return env.TUNNEL.get(id);
}

/** Each shard answers some hundred requests a second. */
const DIRECTORY_SHARDS = 16;

/** @param name a label of the service domain, a whole custom domain, or a webhook receiver's id. */
export function directoryObject(env: Env, name: string): DurableObjectStub<Directory> {
  const shards = Number(env.DIRECTORY_SHARDS ?? DIRECTORY_SHARDS);
  return env.DIRECTORY.getByName(`shard ${computeShard(name, shards)}`);
}

export function organizationObject(env: Env, orgId: string): DurableObjectStub<Organization> {
  return env.ORGANIZATION.getByName(orgId);
}

const RATE_LIMITER_SHARDS = 16;

/** @param key of the bucket. */
export function rateLimiterObject(env: Env, key: string): DurableObjectStub<RateLimiter> {
  return env.RATE_LIMITER.getByName(`shard ${computeShard(key, RATE_LIMITER_SHARDS)}`);
}

export function receiverObject(env: Env, receiverId: string): DurableObjectStub<Receiver> {
  return env.RECEIVER.getByName(receiverId);
}

/** 32-bit FNV-1a: quick, and even for short names. When the number of shards changes, names move. */
export function computeShard(name: string, shards: number): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  }
  return (hash >>> 0) % shards;
}

export function relayObject(env: Env, relayId: string): DurableObjectStub<Relay> {
  return env.RELAY.getByName(relayId);
}
