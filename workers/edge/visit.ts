/**
 * A visitor's request, from its host to its response. In the steady state this is one look-up in the isolate's
 * memory and one call to one object: the request is passed unchanged, and the response streams back.
 */
import { SIGN_IN_HEADER } from "../../access/identity.ts";
import { getRefusalCode } from "../../access/refusal.ts";
import { INTERNAL_HOST } from "../../durable-objects/internal-host.ts";
import { REQUEST_ID_HEADER, type ErrorCode } from "../../protocol/errors.ts";
import { parseHost, toRouteName } from "../../protocol/hosts.ts";
import { getServiceDomain } from "../../protocol/public-address.ts";
import type { Env } from "../env.ts";
import { LimitedLog } from "../../shared/log.ts";
import { callTunnel, cacheGates, chooseTarget } from "./tunnel-calls.ts";
import { createErrorPage, createRefusalPage, type TunnelRefusal } from "./error-pages.ts";
import { keepTruncationVisible } from "./truncation.ts";
import { getCachedTargets, resolveTargets, type TunnelTarget } from "./routes.ts";
import { RequestTrace } from "../../shared/tracing/request-trace.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";

/** Where requests for a host go, computed once for each spelling of the host. */
type Destination = { routeName: string } | ErrorCode;

/** Few: strangers fill it with names that lead nowhere, and each garbage collection traces all of it. */
const DESTINATIONS_MAX = 1_000;
const destinations = new BoundedMap<string, Destination>(DESTINATIONS_MAX);

/** One for each isolate: its limit counts all requests. */
let trace: RequestTrace | undefined;

/** @param authority the request's Host header, unchanged. */
export function visit(request: Request, env: Env, authority: string): Response | Promise<Response> {
  trace ??= new RequestTrace("edge", env.TRACE_REQUESTS);
  const response = respond(request, env, authority);
  return trace.isOff ? response : recordVisit(trace, response);
}

async function recordVisit(
  requestTrace: RequestTrace,
  pending: Response | Promise<Response>,
): Promise<Response> {
  const startedAtMs = Date.now();
  const response = await pending;
  const nowMs = Date.now();
  const requestId = response.headers.get(REQUEST_ID_HEADER) ?? "";
  const { status } = response;
  requestTrace.record({ requestId, status, durationMs: nowMs - startedAtMs }, nowMs);
  return response;
}

function respond(request: Request, env: Env, authority: string): Response | Promise<Response> {
  const destination = getDestination(authority, env);
  if (typeof destination === "string") return createErrorPage(request, env, destination);
  if (request.method === "TRACE") return refuseMethod(request, env);
  const { routeName } = destination;
  const targets = getCachedTargets(routeName);
  if (targets === undefined) return visitUncached(request, env, routeName);
  if (targets === null) return createErrorPage(request, env, "tunnel_not_found");
  const target = chooseTarget(request, env, targets);
  return callTunnel(request, env, target).then(
    (response) => {
      // The tunnel was deleted, or its host has moved: the cached route is outdated.
      if (getRefusalCode(response) === "tunnel_not_found")
        return visitUncached(request, env, routeName);
      return toVisitorResponse(request, env, response, target);
    },
    (cause: unknown) => retryVisit(request, env, target, cause),
  );
}

async function visitUncached(request: Request, env: Env, routeName: string): Promise<Response> {
  const targets = await resolveTargets(env, routeName);
  if (targets === "unavailable") return createErrorPage(request, env, "unavailable");
  if (targets === null) return createErrorPage(request, env, "tunnel_not_found");
  // The previous tunnel has read the body. The visitor's next attempt goes to the new one.
  if (request.bodyUsed) return createErrorPage(request, env, "unavailable");
  const target = chooseTarget(request, env, targets);
  return callTunnel(request, env, target).then(
    (response) => toVisitorResponse(request, env, response, target),
    (cause: unknown) => retryVisit(request, env, target, cause),
  );
}

/** A restarted object loses the calls in flight. GET and HEAD requests without a body are sent again, once. */
async function retryVisit(
  request: Request,
  env: Env,
  target: TunnelTarget,
  cause: unknown,
): Promise<Response> {
  logFailedCall(request, target, cause);
  const isSafe = request.method === "GET" || request.method === "HEAD";
  if (!isSafe || request.body !== null) return createErrorPage(request, env, "agent_offline");
  let response: Response;
  try {
    response = await callTunnel(request, env, target);
  } catch (secondCause) {
    // An object that can't store anything, for example because the disk is full, fails each time.
    logFailedCall(request, target, secondCause);
    return createErrorPage(request, env, "unavailable");
  }
  return toVisitorResponse(request, env, response, target);
}

const failedCalls = new LimitedLog("warn", "tunnel_call_failed");

/** @throws the cause when the visitor has left: no one waits for a response. */
function logFailedCall({ signal }: Request, target: TunnelTarget, cause: unknown): void {
  if (signal.aborted) throw cause;
  failedCalls.record({ object: target.objectName, cause: String(cause) }, Date.now());
}

/** The local server's response, or an error page for a refusal. */
function toVisitorResponse(
  request: Request,
  env: Env,
  response: Response,
  { tunnelId, objectName }: TunnelTarget,
): Response | Promise<Response> {
  const forVisitor = cacheGates(response, objectName);
  const code = getRefusalCode(forVisitor);
  if (code === null) return keepTruncationVisible(request, env, forVisitor);
  const refusal = { code, response: forVisitor };
  return forVisitor.headers.has(SIGN_IN_HEADER)
    ? offerSignIn(request, env, tunnelId, refusal)
    : createRefusalPage(request, env, refusal);
}

async function offerSignIn(
  request: Request,
  env: Env,
  tunnelId: string,
  refusal: TunnelRefusal,
): Promise<Response> {
  const { handleSignIn } = await import("./sign-in.ts");
  return handleSignIn(request, env, tunnelId, refusal);
}

/** RFC 9110 §15.5.6. Tunnels forward every other method. */
function refuseMethod(request: Request, env: Env): Response {
  const page = createErrorPage(request, env, "method_not_allowed");
  page.headers.set("allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  return page;
}

function getDestination(authority: string, env: Env): Destination {
  let destination = destinations.get(authority);
  if (destination === undefined) {
    destination = parseDestination(authority, getServiceDomain(env));
    destinations.set(authority, destination);
  }
  return destination;
}

function parseDestination(authority: string, serviceDomain: string): Destination {
  const host = parseHost(authority);
  if (host === null || host === INTERNAL_HOST) return "invalid_host";
  const routeName = toRouteName(host, serviceDomain);
  return routeName === null ? "tunnel_not_found" : { routeName };
}
