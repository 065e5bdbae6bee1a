/**
 * Which tunnel answers for a host: what this isolate remembers, and what the Hostname object says when it
 * does not. Misses are remembered briefly too, so that a name nobody has costs little.
 */
import type { Env } from "../env.ts";
import { hostnameObject } from "../objects.ts";

const ROUTE_CACHE_MAX_HOSTS = 10_000;
const ROUTE_CACHE_HIT_MS = 60_000;
const ROUTE_CACHE_MISS_MS = 2_000;

interface Remembered {
  tunnelId: string | null;
  untilMs: number;
}

/** Oldest first: a Map keeps the order of insertion. */
const remembered = new Map<string, Remembered>();

/** @returns the tunnel's id, null when nobody answers for the name, undefined when it must be asked for. */
export function rememberedTunnel(routeName: string): string | null | undefined {
  const known = remembered.get(routeName);
  return known !== undefined && known.untilMs > Date.now() ? known.tunnelId : undefined;
}

/** @returns the tunnel's id, or null when nobody answers for the name. */
export async function askForTunnel(env: Env, routeName: string): Promise<string | null> {
  const tunnelId = await hostnameObject(env, routeName).resolve();
  const forMs = tunnelId === null ? ROUTE_CACHE_MISS_MS : ROUTE_CACHE_HIT_MS;
  remembered.delete(routeName);
  if (remembered.size >= ROUTE_CACHE_MAX_HOSTS) {
    const [oldest] = remembered.keys();
    if (oldest !== undefined) remembered.delete(oldest);
  }
  remembered.set(routeName, { tunnelId, untilMs: Date.now() + forMs });
  return tunnelId;
}
