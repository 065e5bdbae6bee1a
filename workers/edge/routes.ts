/**
 * The routes from hosts to tunnels: cached in this isolate, looked up in the directory. Hosts without a tunnel are
 * cached briefly, too, so that requests for them cost little.
 */
import type { Env } from "../env.ts";
import { describeError } from "../errors.ts";
import { directoryObject } from "../objects.ts";
import { log } from "../../shared/log.ts";
import { BoundedMap } from "../../shared/bounded-map.ts";
import { MINUTE_MS } from "../../shared/time.ts";

const ROUTE_CACHE_MAX_HOSTS = 10_000;
const ROUTE_CACHE_HIT_MS = MINUTE_MS;
const ROUTE_CACHE_MISS_MS = 2_000;

interface CachedRoute {
  tunnelId: string;
  untilMs: number;
}

/** Separate, so that requests with random hosts do not displace the routes of tunnels. */
const routes = new BoundedMap<string, CachedRoute>(ROUTE_CACHE_MAX_HOSTS);
const missesUntilMs = new BoundedMap<string, number>(ROUTE_CACHE_MAX_HOSTS);

/** @returns the tunnel's id, null when the host has no tunnel, undefined when the route is not cached. */
export function getCachedTunnel(routeName: string): string | null | undefined {
  const cached = routes.get(routeName);
  if (cached !== undefined && cached.untilMs > Date.now()) return cached.tunnelId;
  return (missesUntilMs.get(routeName) ?? 0) > Date.now() ? null : undefined;
}

/** `tunnelId` null: the host has no tunnel. */
export type Resolution = { tunnelId: string | null } | "unavailable";

/** @returns "unavailable" when the directory does not answer, or is busy with unknown names. */
export async function resolveTunnel(env: Env, routeName: string): Promise<Resolution> {
  const route = await findRoute(env, routeName);
  if (route === "unavailable") {
    // A tunnel's object refuses requests for a host that has moved, so an old route leads to no wrong tunnel.
    const previous = routes.get(routeName);
    return previous ? { tunnelId: previous.tunnelId } : "unavailable";
  }
  const tunnelId = route?.tunnelId ?? null;
  if (tunnelId === null) {
    routes.delete(routeName);
    missesUntilMs.set(routeName, Date.now() + ROUTE_CACHE_MISS_MS);
  } else {
    missesUntilMs.delete(routeName);
    routes.set(routeName, { tunnelId, untilMs: Date.now() + ROUTE_CACHE_HIT_MS });
  }
  return { tunnelId };
}

async function findRoute(env: Env, routeName: string) {
  try {
    const route = await directoryObject(env, routeName).findRoute(routeName);
    return route === "busy" ? "unavailable" : route;
  } catch (error) {
    log("warn", "route_lookup_failed", { routeName, cause: describeError(error) });
    return "unavailable";
  }
}
