/**
 * The routes from hosts to tunnels: cached in this isolate, resolved by the Hostname object. Hosts without a
 * tunnel are cached briefly, too, so that requests for them cost little.
 */
import type { Env } from "../env.ts";
import { hostnameObject } from "../objects.ts";
import { BoundedMap } from "../../shared/bounded-map.ts";
import { MINUTE_MS } from "../../shared/time.ts";

const ROUTE_CACHE_MAX_HOSTS = 10_000;
const ROUTE_CACHE_HIT_MS = MINUTE_MS;
const ROUTE_CACHE_MISS_MS = 2_000;

interface CachedRoute {
  tunnelId: string | null;
  untilMs: number;
}

const routes = new BoundedMap<string, CachedRoute>(ROUTE_CACHE_MAX_HOSTS);

/** @returns the tunnel's id, null when the host has no tunnel, undefined when the route is not cached. */
export function getCachedTunnel(routeName: string): string | null | undefined {
  const cached = routes.get(routeName);
  return cached !== undefined && cached.untilMs > Date.now() ? cached.tunnelId : undefined;
}

/** @returns the tunnel's id, or null when the host has no tunnel. */
export async function resolveTunnel(env: Env, routeName: string): Promise<string | null> {
  const tunnelId = await hostnameObject(env, routeName).resolve();
  const forMs = tunnelId === null ? ROUTE_CACHE_MISS_MS : ROUTE_CACHE_HIT_MS;
  routes.set(routeName, { tunnelId, untilMs: Date.now() + forMs });
  return tunnelId;
}
