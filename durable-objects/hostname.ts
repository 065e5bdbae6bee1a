/**
 * One public host name: which tunnel answers for it. A copy of the row in `hostnames`, filled on the first
 * question and replaced by each change, so that a visit needs no database.
 *
 * The name of the object is the host: a label such as `api-staging` for the service's own domain, a full
 * name for a custom one.
 */
import { DurableObject } from "cloudflare:workers";
import type { ObjectBindings } from "./bindings.ts";
import type { Route } from "./rpc.ts";
import { newerRoute } from "./hostname/route.ts";

const ROUTE_KEY = "route";

export class Hostname extends DurableObject<ObjectBindings> {
  #loading: Promise<Route | null> | undefined;

  // ── Called by workers ──

  /** @returns the tunnel's id, or null when nobody answers for this host. */
  async resolve(): Promise<string | null> {
    const route = this.ctx.storage.kv.get<Route>(ROUTE_KEY) ?? (await this.#load());
    return route?.tunnelId ?? null;
  }

  /** Tells of a change after its commit. An older version than the one known changes nothing. */
  publish(route: Route): void {
    const known = this.ctx.storage.kv.get<Route>(ROUTE_KEY);
    const newest = newerRoute(known, route);
    if (newest !== known) this.ctx.storage.kv.put(ROUTE_KEY, newest);
  }

  // ── Inside ──

  /** A host without a row is not stored: names that strangers guess must not cost anything. */
  async #load(): Promise<Route | null> {
    const host = this.ctx.id.name;
    if (host === undefined) throw new Error("Hostname objects are found by name");
    this.#loading ??= this.env.ROWS.route(host).finally(() => (this.#loading = undefined));
    const route = await this.#loading;
    if (route) this.publish(route);
    return this.ctx.storage.kv.get<Route>(ROUTE_KEY) ?? null;
  }
}
