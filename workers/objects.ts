/** The stubs of Durable Objects: the only place where their names are formed. */
import type { RateLimiter } from "../durable-objects/rate-limiter.ts";
import type { Hostname } from "../durable-objects/hostname.ts";
import type { Organization } from "../durable-objects/organization.ts";
import type { Receiver } from "../durable-objects/receiver.ts";
import type { Relay } from "../durable-objects/relay.ts";
import type { Tunnel } from "../durable-objects/tunnel.ts";
import type { Env } from "./env.ts";
import { BoundedMap } from "../shared/bounded-map.ts";

/** An id is a hash of the name, computed once for each tunnel that an isolate serves. */
const tunnelIds = new BoundedMap<string, DurableObjectId>(10_000);

export function tunnelObject(env: Env, tunnelId: string): DurableObjectStub<Tunnel> {
  let id = tunnelIds.get(tunnelId);
  if (id === undefined) {
    id = env.TUNNEL.idFromName(tunnelId);
    tunnelIds.set(tunnelId, id);
  }
  return env.TUNNEL.get(id);
}

/** @param routeName a label of the service domain, or a whole custom domain. */
export function hostnameObject(env: Env, routeName: string): DurableObjectStub<Hostname> {
  return env.HOSTNAME.getByName(routeName);
}

export function organizationObject(env: Env, orgId: string): DurableObjectStub<Organization> {
  return env.ORGANIZATION.getByName(orgId);
}

export function addressRateLimiter(env: Env, address: string): DurableObjectStub<RateLimiter> {
  return env.RATE_LIMITER.getByName(address);
}

export function pollRateLimiter(env: Env, address: string): DurableObjectStub<RateLimiter> {
  return env.RATE_LIMITER.getByName(`polls of ${address}`);
}

/** The key cannot be an address, so it shares the namespace of the limiters of addresses. */
export function lookupLimiterObject(env: Env, orgId: string): DurableObjectStub<RateLimiter> {
  return env.RATE_LIMITER.getByName(`look-ups of ${orgId}`);
}

export function receiverObject(env: Env, receiverId: string): DurableObjectStub<Receiver> {
  return env.RECEIVER.getByName(receiverId);
}

export function relayObject(env: Env, relayId: string): DurableObjectStub<Relay> {
  return env.RELAY.getByName(relayId);
}
