/**
 * The gates of tunnels as this isolate knows them. It learns them from the answers of the tunnels' objects,
 * and judges by them what is slow to judge. Its verdict goes along with the request to the object, which
 * believes it when the gates are the newest ones: so a change holds from the next request on, and nothing
 * that was refused here was refused by gates that are no more.
 */
import { buildAuthenticators } from "../../access/authenticators.ts";
import { authorize } from "../../access/authorize.ts";
import { readAccessRequest } from "../../access/access-request.ts";
import { EDGE_VERDICT_HEADER, formatEdgeVerdict } from "../../access/edge-verdict.ts";
import { BoundedMap } from "../../shared/bounded-map.ts";
import { GATES_HEADER, parseGates, type Gates } from "../../access/gates.ts";
import { getClientAddress } from "../../shared/client-address.ts";
import type { Env } from "../env.ts";
import { tunnelObject } from "../objects.ts";

/** Tunnels whose gates an isolate remembers. */
const GATES_CACHE_MAX_TUNNELS = 10_000;

const known = new BoundedMap<string, Gates>(GATES_CACHE_MAX_TUNNELS);

/** One request to a tunnel's object. A tunnel without gates gets it as it came. */
export function callTunnel(request: Request, env: Env, tunnelId: string): Promise<Response> {
  const gates = known.get(tunnelId);
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
  const trust = { hosted: env.HOSTED === "true", trustProxy: env.TRUST_PROXY === "true" };
  const visitor = readAccessRequest(request, getClientAddress(request, trust));
  const refusal = await authorize(gates, visitor, buildAuthenticators(env));
  const judged = new Request(request);
  judged.headers.set(EDGE_VERDICT_HEADER, formatEdgeVerdict(gates, refusal));
  return tunnelObject(env, tunnelId).fetch(judged);
}

/** What an answer says to us alone is remembered, and taken out of it. */
export function takePolicyUpdate(answer: Response, tunnelId: string): Response {
  const news = answer.headers.get(GATES_HEADER);
  if (news === null) return answer;
  const gates = parseGates(news);
  if (gates) known.set(tunnelId, gates);
  else known.delete(tunnelId);
  const clean = new Response(answer.body, answer);
  clean.headers.delete(GATES_HEADER);
  return clean;
}
