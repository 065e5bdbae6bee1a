/** The one door to Durable Objects: who else names one could name it differently. */
import type { AddressLimiter } from "../durable-objects/address-limiter.ts";
import type { Hostname } from "../durable-objects/hostname.ts";
import type { Tunnel } from "../durable-objects/tunnel.ts";
import type { Env } from "./env.ts";

export function tunnelObject(env: Env, tunnelId: string): DurableObjectStub<Tunnel> {
  return env.TUNNEL.getByName(tunnelId);
}

/** @param routeName a label of the service domain, or a whole custom domain. */
export function hostnameObject(env: Env, routeName: string): DurableObjectStub<Hostname> {
  return env.HOSTNAME.getByName(routeName);
}

export function addressLimiterObject(env: Env, address: string): DurableObjectStub<AddressLimiter> {
  return env.ADDRESS_LIMITER.getByName(address);
}
