/**
 * Calls to tunnels' objects. This isolate caches the gates of tunnels from the objects' responses and runs the
 * slow ones. It sends its verdict along with the request, and the object accepts the verdict only if the gates
 * are the current ones: so a changed policy applies to the next request, both when it admits and when it refuses.
 */
import { buildAuthenticators } from "../../access/authenticators/authenticators.ts";
import { authorize } from "../../access/authorize.ts";
import { readAccessRequest } from "../../access/access-request.ts";
import { EDGE_VERDICT_HEADER, formatEdgeVerdict } from "../../access/edge-verdict.ts";
import { BoundedMap } from "../../shared/bounded-map.ts";
import { GATES_HEADER, parseGates, type Gates } from "../../access/gates.ts";
import { getClientAddress } from "../../shared/client-address.ts";
import type { Env } from "../env.ts";
import { tunnelObject } from "../objects.ts";

/** Tunnels whose gates an isolate caches. */
const GATES_CACHE_MAX_TUNNELS = 10_000;

const gatesByTunnel = new BoundedMap<string, Gates>(GATES_CACHE_MAX_TUNNELS);

/** One request to a tunnel's object. Without cached gates the request is passed unchanged. */
export function callTunnel(request: Request, env: Env, tunnelId: string): Promise<Response> {
  const gates = gatesByTunnel.get(tunnelId);
  return gates === undefined
    ? tunnelObject(env, tunnelId).fetch(request)
    : callWithVerdict(request, env, tunnelId, gates);
}

async function callWithVerdict(
  request: Request,
  env: Env,
  tunnelId: string,
  gates: Gates,
): Promise<Response> {
  const trust = { onCloudflare: env.HOSTED === "true", trustProxy: env.TRUST_PROXY === "true" };
  const accessRequest = readAccessRequest(request, tunnelId, getClientAddress(request, trust));
  const refusal = await authorize(gates, accessRequest, buildAuthenticators(env));
  const withVerdict = new Request(request);
  withVerdict.headers.set(EDGE_VERDICT_HEADER, formatEdgeVerdict(gates, refusal));
  return tunnelObject(env, tunnelId).fetch(withVerdict);
}

/** Caches the policy update in a response, which is for the edge only, and removes it from the response. */
export function cacheGates(response: Response, tunnelId: string): Response {
  const policyUpdate = response.headers.get(GATES_HEADER);
  if (policyUpdate === null) return response;
  const gates = parseGates(policyUpdate);
  if (gates) gatesByTunnel.set(tunnelId, gates);
  else gatesByTunnel.delete(tunnelId);
  const forVisitor = new Response(response.body, response);
  forVisitor.headers.delete(GATES_HEADER);
  return forVisitor;
}
