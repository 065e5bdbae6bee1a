/**
 * The gates of tunnels as this isolate knows them. It learns them from the answers of the tunnels' objects,
 * and judges by them what is slow to judge. Its verdict goes along with the request to the object, which
 * believes it when the gates are the newest ones: so a change holds from the next request on, and nothing
 * that was refused here was refused by gates that are no more.
 */
import { checksOf } from "../../access/checks.ts";
import { judge, visitorOf } from "../../access/judge.ts";
import { JUDGED_HEADER, writeVerdict } from "../../access/refusal.ts";
import { remember } from "../../shared/bounded-map.ts";
import { GATES_HEADER, readGates, type Gates } from "../../access/settings.ts";
import { clientAddress } from "../../shared/client-address.ts";
import type { Env } from "../env.ts";
import { tunnelObject } from "../objects.ts";

/** Tunnels whose gates an isolate remembers. */
const GATES_CACHE_MAX_TUNNELS = 10_000;

const known = new Map<string, Gates>();

/** One request to a tunnel's object. A tunnel without gates gets it as it came. */
export function callTunnel(request: Request, env: Env, tunnelId: string): Promise<Response> {
  const gates = known.get(tunnelId);
  return gates === undefined
    ? tunnelObject(env, tunnelId).fetch(request)
    : callJudged(request, env, tunnelId, gates);
}

async function callJudged(
  request: Request,
  env: Env,
  tunnelId: string,
  gates: Gates,
): Promise<Response> {
  const trust = { hosted: env.HOSTED === "true", trustProxy: env.TRUST_PROXY === "true" };
  const visitor = visitorOf(request, clientAddress(request, trust));
  const refusal = await judge(gates, visitor, checksOf(env));
  const judged = new Request(request);
  judged.headers.set(JUDGED_HEADER, writeVerdict(gates, refusal));
  return tunnelObject(env, tunnelId).fetch(judged);
}

/** What an answer says to us alone is remembered, and taken out of it. */
export function withoutNews(answer: Response, tunnelId: string): Response {
  const news = answer.headers.get(GATES_HEADER);
  if (news === null) return answer;
  const gates = readGates(news);
  if (gates) remember(known, tunnelId, gates, GATES_CACHE_MAX_TUNNELS);
  else known.delete(tunnelId);
  const clean = new Response(answer.body, answer);
  clean.headers.delete(GATES_HEADER);
  return clean;
}
