/**
 * A shard of the directory: which public host names lead to a tunnel, and which webhook receivers exist. Strangers can
 * request any name, and each object costs a file, so only names in the directory get an object of their own. The directory
 * stores the names that have a row, which it learns from changes or reads once, so that known names need no database.
 */
import { DurableObject } from "cloudflare:workers";
import type { ObjectBindings } from "./bindings.ts";
import { BoundedMap } from "../shared/bounds/bounded-map.ts";
import { LookUps } from "./directory/look-ups.ts";
import { ROUTE_MISS_CACHED_MS } from "./limits.ts";
import { pickNewest } from "./newest-version.ts";
import type { Route } from "./rpc.ts";

/** As many as are looked up in the time for which isolates remember them. */
const MISSED_HOSTS_MAX = 1_000;

const toRouteKey = (host: string) => `route:${host}`;
const toReceiverKey = (id: string) => `receiver:${id}`;

export class Directory extends DurableObject<ObjectBindings> {
  readonly #routes = new LookUps((hosts) => this.env.INTERNAL_API.findRoutes(hosts));
  /** Hosts that no tunnel had when they were requested, each with the time of the last request. */
  readonly #missedAtMs = new BoundedMap<string, number>(MISSED_HOSTS_MAX);
  readonly #receivers = new LookUps(async (ids) => {
    const existing = await this.env.INTERNAL_API.findReceiverIds(ids);
    return new Map(existing.map((id) => [id, true as const]));
  });

  // ── Called by workers ──

  /**
   * @param host a label such as `api-staging` for the service's own domain, a full name for a custom one.
   * @returns null when the host has no row; "busy" when too many unknown names are being looked up.
   */
  async findRoute(host: string): Promise<Route | null | "busy"> {
    if (!this.#getRoute(host)) {
      const found = await this.#routes.find(host);
      if (found === "busy") return "busy";
      if (found) this.#storeRoute(host, found);
    }
    // The route may have been published while the database was read.
    const route = this.#getRoute(host) ?? null;
    if ((route?.tunnelId ?? null) === null) this.#missedAtMs.set(host, Date.now());
    return route;
  }

  /**
   * Called after a change is committed. A version that is not newer than the stored one changes nothing. Returns when
   * no isolate remembers that the host had no tunnel: then visitors reach the tunnel.
   */
  async publishRoute(host: string, route: Route): Promise<void> {
    this.#storeRoute(host, route);
    const forgottenAtMs = (this.#missedAtMs.get(host) ?? 0) + ROUTE_MISS_CACHED_MS;
    const waitMs = Math.min(forgottenAtMs - Date.now(), ROUTE_MISS_CACHED_MS);
    if (route.tunnelId !== null && waitMs > 0) await scheduler.wait(waitMs);
  }

  /** @returns "busy" when too many unknown ids are being looked up. */
  async hasReceiver(id: string): Promise<boolean | "busy"> {
    if (this.#hasStoredReceiver(id)) return true;
    const found = await this.#receivers.find(id);
    if (found === "busy") return "busy";
    if (found) this.addReceiver(id);
    return this.#hasStoredReceiver(id);
  }

  addReceiver(id: string): void {
    if (!this.#hasStoredReceiver(id)) this.ctx.storage.kv.put(toReceiverKey(id), true);
  }

  removeReceiver(id: string): void {
    this.ctx.storage.kv.delete(toReceiverKey(id));
  }

  // ── Inside ──

  #storeRoute(host: string, route: Route): void {
    const stored = this.#getRoute(host);
    const newest = pickNewest(stored, route);
    if (newest !== stored) this.ctx.storage.kv.put(toRouteKey(host), newest);
  }

  #getRoute(host: string): Route | undefined {
    return this.ctx.storage.kv.get<Route>(toRouteKey(host));
  }

  #hasStoredReceiver(id: string): boolean {
    return this.ctx.storage.kv.get<boolean>(toReceiverKey(id)) ?? false;
  }
}
