/**
 * Which tunnel answers for a host: what this isolate remembers, and what the Hostname object says when it
 * does not. Misses are remembered briefly too, so that a name nobody has costs little.
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

/** @returns the tunnel's id, null when nobody answers for the name, undefined when it must be asked for. */
export function getCachedTunnel(routeName: string): string | null | undefined {
  const known = routes.get(routeName);
  return known !== undefined && known.untilMs > Date.now() ? known.tunnelId : undefined;
}

/** @returns the tunnel's id, or null when nobody answers for the name. */
export async function resolveTunnel(env: Env, routeName: string): Promise<string | null> {
  const tunnelId = await hostnameObject(env, routeName).resolve();
  const forMs = tunnelId === null ? ROUTE_CACHE_MISS_MS : ROUTE_CACHE_HIT_MS;
  routes.set(routeName, { tunnelId, untilMs: Date.now() + forMs });
  return tunnelId;
}
