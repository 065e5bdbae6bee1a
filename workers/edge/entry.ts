/**
 * The entry point for visitors and agents: requests for the service's own hosts go to the API, all others to the edge. A
 * self-hosted server runs it, with the objects, in an isolate that contains no module of the API, so that the garbage
 * collector has little to trace.
 */
import { getAuthority, parseHost } from "../../protocol/hosts.ts";
import { getServiceDomain, parseApiHosts } from "../../protocol/public-address.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import type { Env } from "../env.ts";
import { edgeGarbageCollection } from "../../shared/garbage-collection.ts";
import { visit } from "./visit.ts";

export { RateLimiter } from "../../durable-objects/rate-limiter.ts";
export { Directory } from "../../durable-objects/directory.ts";
export { Organization } from "../../durable-objects/organization.ts";
export { Receiver } from "../../durable-objects/receiver.ts";
export { Relay } from "../../durable-objects/relay.ts";
export { Tunnel } from "../../durable-objects/tunnel.ts";
export { ObjectsControl } from "./objects-control.ts";

export default {
  fetch(request: Request, env: Env): Response | Promise<Response> {
    edgeGarbageCollection.countRequest();
    const authority = getAuthority(request.url);
    return isApiHost(authority, env) ? env.API.fetch(request) : visit(request, env, authority);
  },
};

/** Cached for each spelling of the authority, port included. */
const apiAuthorities = new BoundedMap<string, boolean>(1_000);

function isApiHost(authority: string, env: Env): boolean {
  const known = apiAuthorities.get(authority);
  if (known !== undefined) return known;
  const isApi = parseApiHosts(getServiceDomain(env), env.API_HOSTS).includes(
    parseHost(authority) ?? "",
  );
  apiAuthorities.set(authority, isApi);
  return isApi;
}
