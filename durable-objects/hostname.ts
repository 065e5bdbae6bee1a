/**
 * One public host name: which tunnel serves it. The object holds a copy of the row in `hostnames`, which it
 * reads once and which each change replaces, so that a visit needs no database.
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

  /** @returns the tunnel's id; null when no tunnel serves this host. */
  async resolve(): Promise<string | null> {
    const route = this.ctx.storage.kv.get<Route>(ROUTE_KEY) ?? (await this.#load());
    return route?.tunnelId ?? null;
  }

  /** Called after a change is committed. A version that is not newer than the stored one changes nothing. */
  publish(route: Route): void {
    const stored = this.ctx.storage.kv.get<Route>(ROUTE_KEY);
    const newest = newerRoute(stored, route);
    if (newest !== stored) this.ctx.storage.kv.put(ROUTE_KEY, newest);
  }

  // ── Inside ──

  /** Nothing is stored for a host without a row: guessed names must not cost storage. */
  async #load(): Promise<Route | null> {
    const host = this.ctx.id.name;
    if (host === undefined) throw new Error("A Hostname object must be addressed by its name");
    this.#loading ??= this.env.INTERNAL_API.findRoute(host).finally(
      () => (this.#loading = undefined),
    );
    const route = await this.#loading;
    if (route) this.publish(route);
    return this.ctx.storage.kv.get<Route>(ROUTE_KEY) ?? null;
  }
}
