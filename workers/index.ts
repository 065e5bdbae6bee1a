/**
 * The entry points of the Worker. Requests for the service's own hosts go to the API, all others to the edge. The API is
 * an entry point of its own, and imported dynamically: a self-hosted server runs it in its own isolate, so that an isolate
 * that serves visitors loads only the edge and has little for the garbage collector to trace.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import { getAuthority, parseHost } from "../protocol/hosts.ts";
import { startDraining } from "./draining.ts";
import { visit } from "./edge/visit.ts";
import type { Env } from "./env.ts";
import { parseApiHosts } from "../protocol/public-address.ts";
import { BoundedMap } from "../shared/bounded-map.ts";

export { RateLimiter } from "../durable-objects/rate-limiter.ts";
export { Directory } from "../durable-objects/directory.ts";
export { Organization } from "../durable-objects/organization.ts";
export { Receiver } from "../durable-objects/receiver.ts";
export { Relay } from "../durable-objects/relay.ts";
export { Tunnel } from "../durable-objects/tunnel.ts";
export { InternalApi } from "./internal-api.ts";

export default {
  fetch(request, env): Response | Promise<Response> {
    const authority = getAuthority(request.url);
    return isApiHost(authority, env) ? env.API.fetch(request) : visit(request, env, authority);
  },

  async scheduled(_event, env): Promise<void> {
    const { runCron } = await import("./jobs/cron.ts");
    await runCron(env);
  },
} satisfies ExportedHandler<Env>;

/** The management API. */
export class Api extends WorkerEntrypoint<Env> {
  override async fetch(request: Request): Promise<Response> {
    const { handleApi } = await import("./api/app.ts");
    return handleApi(request, this.env, this.ctx);
  }
}

/** Called by the self-hosted server, on a socket that only it can reach. */
export class Control extends WorkerEntrypoint<Env> {
  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/metrics") {
      const { collectServiceMetrics } = await import("./jobs/service-metrics.ts");
      return Response.json(await collectServiceMetrics(this.env));
    }
    const { drainConnections, runCron } = await import("./jobs/cron.ts");
    if (pathname === "/drain") {
      startDraining();
      await drainConnections(this.env);
    } else if (pathname === "/cron") await runCron(this.env);
    else return new Response(null, { status: 404 });
    return new Response(null, { status: 204 });
  }
}

/** Cached for each spelling of the authority, port included. */
const apiAuthorities = new BoundedMap<string, boolean>(1_000);

function isApiHost(authority: string, env: Env): boolean {
  const known = apiAuthorities.get(authority);
  if (known !== undefined) return known;
  const domain = (env.SERVICE_DOMAIN ?? "localhost").toLowerCase();
  const isApi = parseApiHosts(domain, env.API_HOSTS).includes(parseHost(authority) ?? "");
  apiAuthorities.set(authority, isApi);
  return isApi;
}
