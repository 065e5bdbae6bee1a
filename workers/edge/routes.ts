/**
 * The routes from hosts to tunnels: cached in this isolate, looked up in the directory. Hosts without a tunnel are
 * cached briefly, too, so that requests for them cost little.
 */
import { ROUTE_MISS_CACHED_MS } from "../../durable-objects/limits.ts";
import { toObjectName } from "../../durable-objects/tunnel/shards/object-name.ts";
import type { Env } from "../env.ts";
import { describeError } from "../errors.ts";
import { directoryObject } from "../objects.ts";
import { LimitedLog } from "../../shared/log.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { isAhead, MINUTE_MS } from "../../shared/time.ts";

const ROUTE_CACHE_MAX_HOSTS = 10_000;
const ROUTE_CACHE_HIT_MS = MINUTE_MS;
/** Few: strangers fill it, and each garbage collection traces all of it. */
const MISSES_MAX_HOSTS = 1_000;

/** One of a tunnel's objects. */
export interface TunnelTarget {
  tunnelId: string;
  objectName: string;
}

interface CachedRoute {
  /** The objects that the tunnel's visitors are spread over. */
  targets: TunnelTarget[];
  untilMs: number;
}

/** Separate, so that requests with random hosts do not displace the routes of tunnels. */
const routes = new BoundedMap<string, CachedRoute>(ROUTE_CACHE_MAX_HOSTS);
const missesUntilMs = new BoundedMap<string, number>(MISSES_MAX_HOSTS);

/** @returns the tunnel's objects, null when the host has no tunnel, undefined when the route is not cached. */
export function getCachedTargets(routeName: string): TunnelTarget[] | null | undefined {
  const cached = routes.get(routeName);
  const nowMs = Date.now();
  if (cached && isAhead(cached.untilMs, ROUTE_CACHE_HIT_MS, nowMs)) return cached.targets;
  const isMiss = isAhead(missesUntilMs.get(routeName) ?? 0, ROUTE_MISS_CACHED_MS, nowMs);
  return isMiss ? null : undefined;
}

/**
 * @returns the tunnel's objects, null when the host has no tunnel, "unavailable" when the directory does not answer, or is
 * busy with unknown names.
 */
export async function resolveTargets(
  env: Env,
  routeName: string,
): Promise<TunnelTarget[] | null | "unavailable"> {
  const requestedAtMs = Date.now();
  const route = await findRoute(env, routeName);
  if (route === "unavailable") {
    // A tunnel's object refuses requests for a host that has moved, so an old route leads to no wrong tunnel.
    return routes.get(routeName)?.targets ?? "unavailable";
  }
  const tunnelId = route?.tunnelId ?? null;
  if (tunnelId === null) {
    routes.delete(routeName);
    missesUntilMs.set(routeName, requestedAtMs + ROUTE_MISS_CACHED_MS);
    return null;
  }
  const targets = Array.from({ length: route?.shards ?? 1 }, (_, shard) => ({
    tunnelId,
    objectName: toObjectName(tunnelId, shard),
  }));
  missesUntilMs.delete(routeName);
  routes.set(routeName, { targets, untilMs: Date.now() + ROUTE_CACHE_HIT_MS });
  return targets;
}

/** Strangers can request any number of names while the database is down. */
const failures = new LimitedLog("warn", "route_lookup_failed");

async function findRoute(env: Env, routeName: string) {
  try {
    const route = await directoryObject(env, routeName).findRoute(routeName);
    return route === "busy" ? "unavailable" : route;
  } catch (error) {
    failures.record({ routeName, cause: describeError(error) }, Date.now());
    return "unavailable";
  }
}
