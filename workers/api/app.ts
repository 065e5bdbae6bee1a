/** The management API. This file is its table of contents, and what holds for every route. */
import { OpenAPIHono } from "@hono/zod-openapi";
import { HTTPException } from "hono/http-exception";
import { matchedRoutes } from "hono/route";
import { clientAddress } from "../../protocol/client-address.ts";
import { REQUEST_ID_HEADER } from "../../protocol/errors.ts";
import { SERVICE_VERSION } from "../../protocol/version.ts";
import { openDatabase } from "../background/outbox.ts";
import { configOf } from "../config.ts";
import type { Env } from "../env.ts";
import { ApiError, describeError, errorResponse } from "../errors.ts";
import { log } from "../log.ts";
import { agentStreams } from "./agent-streams.ts";
import { agents } from "./agents.ts";
import { auth } from "./auth.ts";
import { basicAuth } from "./basic-auth.ts";
import { billing } from "./billing.ts";
import { billingWebhook } from "./billing-webhook.ts";
import { capturing } from "./capturing.ts";
import { cli } from "./cli.ts";
import { connections } from "./connections.ts";
import type { ApiContext, ApiEnv } from "./context.ts";
import { domains } from "./domains.ts";
import { edgeAuth } from "./edge-auth.ts";
import { events } from "./events.ts";
import { health } from "./health.ts";
import { hooks } from "./hooks.ts";
import { inspector } from "./inspector.ts";
import { inspectorWatch } from "./inspector-watch.ts";
import { invitations } from "./invitations.ts";
import { ipAllowlist } from "./ip-allowlist.ts";
import { maintenance } from "./maintenance.ts";
import { members } from "./members.ts";
import { metrics } from "./metrics.ts";
import { mfa } from "./mfa.ts";
import { mockBilling } from "./mock-billing.ts";
import { networkDevices } from "./networks/devices.ts";
import { networks } from "./networks/networks.ts";
import { relayLink } from "./networks/relay-link.ts";
import { networkServers } from "./networks/server.ts";
import { oauth } from "./oauth.ts";
import { orgs } from "./orgs.ts";
import { pages } from "./pages.ts";
import { passwords } from "./passwords.ts";
import { projects } from "./projects.ts";
import { policies } from "./policies.ts";
import { receivers } from "./receivers.ts";
import { boundedBody } from "./request-body.ts";
import { relayTickets } from "./relay-tickets.ts";
import { reservedSubdomains } from "./reserved-subdomains.ts";
import { sessions } from "./sessions.ts";
import { setup } from "./setup.ts";
import { tokens } from "./tokens.ts";
import { tunnels } from "./tunnels.ts";
import { visits } from "./visits.ts";

const api = new OpenAPIHono<ApiEnv>();

api.use(async (c, next) => {
  const startedAt = Date.now();
  c.set("requestId", crypto.randomUUID());
  await next();
  // A WebSocket's answer is passed on as it is: a copy with another header would lose the socket.
  if (c.res.status !== 101) {
    c.res.headers.set(REQUEST_ID_HEADER, c.var.requestId);
    c.res.headers.set("X-Content-Type-Options", "nosniff");
    if (!c.res.headers.has("Cache-Control")) c.res.headers.set("Cache-Control", "no-store");
  }
  logRequest(c, Date.now() - startedAt);
});

api.use(async (c, next) => {
  const config = configOf(c.env);
  c.set("config", config);
  c.set("db", openDatabase(c.env));
  const trust = { hosted: config.HOSTED, trustProxy: config.TRUST_PROXY };
  c.set("address", clientAddress(c.req.raw, trust));
  await next();
});

api.use(boundedBody);

for (const area of [
  health,
  auth,
  sessions,
  passwords,
  mfa,
  oauth,
  orgs,
  members,
  invitations,
  cli,
  setup,
  tokens,
  projects,
  tunnels,
  basicAuth,
  edgeAuth,
  visits,
  policies,
  maintenance,
  capturing,
  ipAllowlist,
  relayTickets,
  domains,
  reservedSubdomains,
  receivers,
  hooks,
  agents,
  agentStreams,
  connections,
  inspectorWatch,
  networks,
  networkServers,
  networkDevices,
  relayLink,
  events,
  billing,
  billingWebhook,
  mockBilling,
  inspector,
  metrics,
  pages,
])
  api.route("/", area);

api.openAPIRegistry.registerComponent("securitySchemes", "bearer", {
  type: "http",
  scheme: "bearer",
  bearerFormat: "JWT",
});
api.get("/openapi.json", (c) =>
  c.json(
    api.getOpenAPI31Document({
      openapi: "3.1.0",
      info: { title: "Underpass", version: SERVICE_VERSION },
      servers: [{ url: c.var.config.publicOrigin }],
    }),
  ),
);

const METHODS_BY_PATH = new Map<string, Set<string>>();
for (const { path, method } of api.routes) {
  if (method === "ALL") continue;
  METHODS_BY_PATH.set(path, (METHODS_BY_PATH.get(path) ?? new Set()).add(method));
}

api.notFound((c) => {
  const segments = c.req.path.split("/");
  for (const [path, methods] of METHODS_BY_PATH) {
    if (!matchesPath(path.split("/"), segments)) continue;
    const allowed = [...methods].sort().join(", ");
    throw new ApiError("method_not_allowed", `This path takes ${allowed}.`, {
      headers: { Allow: allowed },
    });
  }
  throw new ApiError("not_found", "There is no such route.");
});

function matchesPath(pattern: string[], segments: string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, index) => part.startsWith(":") || part === segments[index])
  );
}

api.onError((thrown, c) => {
  const error = asApiError(thrown);
  if (error.code === "internal") {
    const cause = describeError(error.details.cause);
    log("error", "request_failed", { requestId: c.var.requestId, cause });
  }
  // Through the context, so that a cookie that the route has just cleared is cleared.
  const answer = errorResponse(error);
  return c.newResponse(answer.body, answer);
});

function asApiError(thrown: Error): ApiError {
  if (thrown instanceof ApiError) return thrown;
  // What the framework itself finds wrong with a body.
  if (thrown instanceof HTTPException && thrown.status === 400) {
    return new ApiError("invalid_request", "The body is not valid JSON.");
  }
  if (thrown instanceof HTTPException && thrown.status === 415) {
    return new ApiError("unsupported_media_type", "The body must be application/json.");
  }
  return new ApiError("internal", "Something went wrong on our side.", { cause: thrown });
}

const UNLOGGED = new Set(["/health", "/ready"]);

function logRequest(c: ApiContext, ms: number): void {
  const route = matchedRoutes(c).findLast(({ method }) => method !== "ALL")?.path;
  if (route !== undefined && UNLOGGED.has(route)) return;
  const { requestId, principal, masterKey, agentToken, refusal } = c.var;
  log("info", "request", {
    requestId,
    method: c.req.method,
    route: route ?? null,
    status: c.res.status,
    ms,
    orgId: principal?.orgId ?? masterKey?.orgId ?? agentToken?.orgId,
    userId: principal?.userId,
    refusal,
  });
}

export async function handleApi(
  request: Request,
  env: Env,
  ctx: ExecutionContext,
): Promise<Response> {
  return api.fetch(request, env, ctx);
}
