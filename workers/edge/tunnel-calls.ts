/**
 * Calls to tunnels' objects. This isolate caches the gates of tunnels from the objects' responses and runs the
 * slow ones. It sends its verdict along with the request, and the object accepts the verdict only if the gates
 * are the current ones: so a changed policy applies to the next request, both when it admits and when it refuses.
 */
import { buildAuthenticators } from "../../access/authenticators/authenticators.ts";
import { authorize } from "../../access/authorize.ts";
import { readAccessRequest } from "../../access/access-request.ts";
import { EDGE_VERDICT_HEADER, formatEdgeVerdict } from "../../access/edge-verdict.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { GATES_HEADER, parseGates, type Gates } from "../../access/gates.ts";
import { getAddressGroup } from "../../shared/address-group.ts";
import { getAddressTrust, getClientAddress } from "../../shared/client-address.ts";
import type { Env } from "../env.ts";
import { computeShard, tunnelObject } from "../objects.ts";
import type { TunnelTarget } from "./routes.ts";

/** Objects of tunnels whose gates an isolate caches. */
const GATES_CACHE_MAX_OBJECTS = 10_000;

/** By the names of objects: each object has a gates tag of its own. */
const gatesByObject = new BoundedMap<string, Gates>(GATES_CACHE_MAX_OBJECTS);

/**
 * The object that serves a visitor. All requests of an address group reach the same one, so that what is counted for each
 * visitor is exact.
 */
export function chooseTarget(request: Request, env: Env, targets: TunnelTarget[]): TunnelTarget {
  if (targets.length === 1) return targets[0]!;
  const group = getAddressGroup(getClientAddress(request, getAddressTrust(env)));
  return targets[computeShard(group, targets.length)]!;
}

/** One request to a tunnel's object. Without cached gates the request is passed unchanged. */
export function callTunnel(request: Request, env: Env, target: TunnelTarget): Promise<Response> {
  const gates = gatesByObject.get(target.objectName);
  return gates === undefined
    ? tunnelObject(env, target.objectName).fetch(request)
    : callWithVerdict(request, env, target, gates);
}

async function callWithVerdict(
  request: Request,
  env: Env,
  { tunnelId, objectName }: TunnelTarget,
  gates: Gates,
): Promise<Response> {
  const address = getClientAddress(request, getAddressTrust(env));
  const accessRequest = readAccessRequest(request, tunnelId, address);
  const refusal = await authorize(gates, accessRequest, buildAuthenticators(env));
  const withVerdict = new Request(request);
  withVerdict.headers.set(EDGE_VERDICT_HEADER, formatEdgeVerdict(gates, refusal));
  return tunnelObject(env, objectName).fetch(withVerdict);
}

/** Caches the gates in a header of the response, which is for the edge only, and removes the header. */
export function cacheGates(response: Response, objectName: string): Response {
  const gatesUpdate = response.headers.get(GATES_HEADER);
  if (gatesUpdate === null) return response;
  const gates = parseGates(gatesUpdate);
  if (gates) gatesByObject.set(objectName, gates);
  else gatesByObject.delete(objectName);
  const forVisitor = new Response(response.body, response);
  forVisitor.headers.delete(GATES_HEADER);
  return forVisitor;
}
