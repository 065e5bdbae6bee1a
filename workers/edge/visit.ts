/**
 * A visitor's request: host in, answer out. The steady state is a look-up in this isolate's memory and one
 * call to one object, to which the request is passed as it is and from which the answer streams.
 */
import { SIGN_IN_HEADER } from "../../access/identity.ts";
import { refusalOf } from "../../access/refusal.ts";
import { AGENT_HOST } from "../../durable-objects/tunnel/agents/admission.ts";
import type { ErrorCode } from "../../protocol/errors.ts";
import { hostOf, routeNameOf } from "../../protocol/hosts.ts";
import type { Env } from "../env.ts";
import { log } from "../../shared/log.ts";
import { callTunnel, withoutNews } from "./gates.ts";
import { errorPage, refusalPage } from "./pages.ts";
import { askForTunnel, rememberedTunnel } from "./routes.ts";

/** Where a request goes, worked out once for each way to write its host. */
type Destination = { routeName: string } | ErrorCode;

const destinations = new Map<string, Destination>();
const DESTINATIONS_MAX = 10_000;

/** @param authority what the request's Host header says, as it came. */
export function visit(request: Request, env: Env, authority: string): Response | Promise<Response> {
  const destination = destinationOf(authority, env);
  if (typeof destination === "string") return errorPage(request, destination);
  const { routeName } = destination;
  const tunnelId = rememberedTunnel(routeName);
  if (tunnelId === undefined) return visitUnknown(request, env, routeName);
  if (tunnelId === null) return errorPage(request, "tunnel_not_found");
  return callTunnel(request, env, tunnelId).then(
    (answer) => {
      // The tunnel is gone, and its name may have a new one that this isolate has not heard of.
      if (refusalOf(answer) === "tunnel_not_found") return visitUnknown(request, env, routeName);
      return show(request, env, answer, tunnelId);
    },
    (cause: unknown) => visitAgain(request, env, tunnelId, cause),
  );
}

async function visitUnknown(request: Request, env: Env, routeName: string): Promise<Response> {
  const tunnelId = await askForTunnel(env, routeName);
  if (tunnelId === null) return errorPage(request, "tunnel_not_found");
  // It went to the tunnel that had the name before; whoever sends it again finds the new one.
  if (request.bodyUsed) return errorPage(request, "unavailable");
  return show(request, env, await callTunnel(request, env, tunnelId), tunnelId);
}

/** A restarted object loses the call in flight; what can't do anything twice is sent once more. */
async function visitAgain(
  request: Request,
  env: Env,
  tunnelId: string,
  cause: unknown,
): Promise<Response> {
  if (request.signal.aborted) throw cause;
  log("warn", "tunnel_call_failed", { tunnelId, cause: String(cause) });
  const isSafe = request.method === "GET" || request.method === "HEAD";
  if (!isSafe || request.body !== null) return errorPage(request, "agent_offline");
  return show(request, env, await callTunnel(request, env, tunnelId), tunnelId);
}

/** The object's answer as the visitor gets it: the local server's own, or a page for a refusal. */
function show(
  request: Request,
  env: Env,
  answer: Response,
  tunnelId: string,
): Response | Promise<Response> {
  const clean = withoutNews(answer, tunnelId);
  const code = refusalOf(clean);
  if (code === null) return clean;
  return clean.headers.has(SIGN_IN_HEADER)
    ? offerSignIn(request, env, tunnelId, code, clean)
    : refusalPage(request, code, clean);
}

async function offerSignIn(
  ...visit: [Request, Env, tunnelId: string, ErrorCode, refusal: Response]
): Promise<Response> {
  const { leadToSignIn } = await import("./sign-in.ts");
  return leadToSignIn(...visit);
}

function destinationOf(authority: string, env: Env): Destination {
  let destination = destinations.get(authority);
  if (destination === undefined) {
    destination = workOut(authority, (env.SERVICE_DOMAIN ?? "localhost").toLowerCase());
    if (destinations.size >= DESTINATIONS_MAX) destinations.clear();
    destinations.set(authority, destination);
  }
  return destination;
}

function workOut(authority: string, serviceDomain: string): Destination {
  const host = hostOf(authority);
  if (host === null || host === AGENT_HOST) return "invalid_host";
  const routeName = routeNameOf(host, serviceDomain);
  return routeName === null ? "tunnel_not_found" : { routeName };
}
