/** The management API: what applies to every route. */
import { OpenAPIHono } from "@hono/zod-openapi";
import { HTTPException } from "hono/http-exception";
import { matchedRoutes } from "hono/route";
import { getAddressGroup } from "../../shared/address-group.ts";
import { getAddressTrust, getClientAddress } from "../../shared/client-address.ts";
import { REQUEST_ID_HEADER } from "../../protocol/errors.ts";
import { RECONNECT_MAX_MS } from "../../protocol/limits.ts";
import { createDatabase } from "../jobs/outbox.ts";
import { getConfig } from "../config/config.ts";
import type { Env } from "../env.ts";
import { ApiError, describeError, errorResponse } from "../errors.ts";
import { setTransportSecurity } from "../transport-security.ts";
import { isDatabaseUnavailable, isTransactionConflict } from "../database-outage.ts";
import { UndeliveredError } from "../store/database.ts";
import { LimitReachedError } from "../store/bounds.ts";
import { PermissionLostError } from "../store/locks.ts";
import { UnknownPositionError } from "../store/page.ts";
import { unauthorized } from "./guard.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { LimitedLog } from "../../shared/log.ts";
import { invalidField, noRoute, type ApiContext, type ApiEnv } from "./route.ts";
import { AREAS } from "./areas.ts";
import {
  dashboard,
  isNavigation,
  NAVIGATION_HEADERS,
  sendDashboardPage,
  servePageToBrowsers,
} from "./dashboard/dashboard.ts";
import { limitRequestBody } from "./request-body.ts";

const DATABASE_RETRY_AFTER_SECONDS = 2;

const api = new OpenAPIHono<ApiEnv>();

api.use(async (c, next) => {
  const startedAt = Date.now();
  c.set("requestId", crypto.randomUUID());
  await next();
  // The response of a WebSocket is returned unchanged: a copy with another header would lose the socket.
  if (c.res.status !== 101) {
    c.res.headers.set(REQUEST_ID_HEADER, c.var.requestId);
    c.res.headers.set("X-Content-Type-Options", "nosniff");
    if (!c.res.headers.has("Cache-Control")) c.res.headers.set("Cache-Control", "no-store");
  }
  logRequest(c, Date.now() - startedAt);
});

api.use(async (c, next) => {
  const config = getConfig(c.env);
  c.set("config", config);
  const address = getClientAddress(c.req.raw, getAddressTrust(c.env));
  c.set("address", address);
  c.set("db", createDatabase(c.env, getAddressGroup(address)));
  await next();
  if (c.res.status !== 101) setTransportSecurity(c.res.headers, config.PUBLIC_SCHEME);
});

api.use(limitRequestBody);
api.use(servePageToBrowsers);

/** A path without parameters is not one of another route's parameters: `DELETE /domains/allowed` names no domain. */
api.use(async (c, next) => {
  const { method, path } = c.req;
  const methods = METHODS_BY_PATH.get(path);
  const isSupported = methods?.has(method === "HEAD" ? "GET" : method) ?? true;
  if (!isSupported) throw methodNotAllowed(methods!);
  await next();
});

for (const router of [...AREAS.flatMap(({ routers }) => routers), dashboard])
  api.route("/", router);

const METHODS_BY_PATH = new Map<string, Set<string>>();
for (const { path, method } of api.routes) {
  if (method === "ALL") continue;
  METHODS_BY_PATH.set(path, (METHODS_BY_PATH.get(path) ?? new Set()).add(method));
}

api.notFound(async (c) => {
  const segments = c.req.path.split("/");
  for (const [path, methods] of METHODS_BY_PATH) {
    if (!matchesPath(path.split("/"), segments)) continue;
    throw methodNotAllowed(methods);
  }
  if (!isNavigation(c)) throw noRoute({ Vary: NAVIGATION_HEADERS });
  const page = await sendDashboardPage(c, 404);
  page.headers.append("Vary", NAVIGATION_HEADERS);
  return page;
});

function methodNotAllowed(methods: ReadonlySet<string>): ApiError {
  const supported = methods.has("GET") ? ["HEAD", ...methods] : [...methods];
  const allowed = supported.sort().join(", ");
  return new ApiError("method_not_allowed", `This path supports only ${allowed}.`, {
    headers: { Allow: allowed },
  });
}

function matchesPath(pattern: string[], segments: string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, index) =>
      // No parameter of a path is empty.
      part.startsWith(":") ? segments[index] !== "" : part === segments[index],
    )
  );
}

const failures = new LimitedLog("error", "request_failed");

api.onError((thrown, c) => {
  const error = toApiError(thrown);
  if (error !== thrown && error.details.cause !== undefined) {
    const cause = describeError(error.details.cause);
    failures.record({ requestId: c.var.requestId, cause }, Date.now());
  }
  // Through the context, which adds the headers that the route has set, such as a cleared cookie.
  const answer = errorResponse(error);
  return c.newResponse(answer.body, answer);
});

function toApiError(thrown: Error): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof PermissionLostError) {
    if (thrown.credential === "token") return unauthorized();
    return new ApiError(
      "forbidden",
      "Your role changed while this request was processed, so it had no effect. Send it again.",
    );
  }
  if (thrown instanceof UnknownPositionError) {
    const message = "must be the id of a row that is still in the list; start again without it";
    return new ApiError("invalid_request", `The query parameter after ${message}.`, {
      fields: [{ path: "after", message }],
    });
  }
  if (thrown instanceof LimitReachedError) {
    const { message, retryAfterMs } = thrown;
    if (retryAfterMs === null) return new ApiError("conflict", message);
    return new ApiError("rate_limited", message, { retryAfterSeconds: retryAfterMs / 1000 });
  }
  if (thrown instanceof UndeliveredError) {
    const message =
      "The change is saved but not in effect yet. It takes effect within a few minutes.";
    return new ApiError("unavailable", message, { retryAfterSeconds: RECONNECT_MAX_MS / 1000 });
  }
  if (isDatabaseUnavailable(thrown) || isTransactionConflict(thrown)) {
    const message = "The database is busy or can't be reached. Try again in a moment.";
    const retryAfterSeconds = DATABASE_RETRY_AFTER_SECONDS;
    return new ApiError("unavailable", message, { retryAfterSeconds, cause: thrown });
  }
  // The framework itself refuses a body that is not JSON.
  if (thrown instanceof HTTPException && thrown.status === 400) {
    return invalidField("", "is not valid JSON");
  }
  if (thrown instanceof HTTPException && thrown.status === 415) {
    return new ApiError(
      "unsupported_media_type",
      "The Content-Type of the request body must be application/json.",
    );
  }
  return new ApiError("internal", "The server failed to process this request. Try again later.", {
    cause: thrown,
  });
}

/** Load balancers and monitors request these every few seconds. */
const UNLOGGED_ROUTES = new Set(["/health", "/ready"]);

function logRequest(c: ApiContext, ms: number): void {
  const route = matchedRoutes(c).findLast(({ method }) => method !== "ALL")?.path;
  if (route !== undefined && UNLOGGED_ROUTES.has(route)) return;
  const { requestId, principal, masterKey, agentToken, refusal } = c.var;
  const orgId = principal?.orgId ?? masterKey?.orgId ?? agentToken?.orgId;
  const details = {
    requestId,
    method: c.req.method,
    route: route ?? null,
    status: c.res.status,
    ms,
    orgId,
    userId: principal?.userId,
    refusal,
  };
  getRequestLog(orgId).record(details, Date.now());
}

const REQUEST_LOGS_MAX = 10_000;
const requestLogs = new BoundedMap<string, LimitedLog>(REQUEST_LOGS_MAX);

/** Each organization has a limit of its own. All callers without one share a limit. */
function getRequestLog(orgId = ""): LimitedLog {
  const requestLog = requestLogs.get(orgId) ?? new LimitedLog("info", "request");
  requestLogs.set(orgId, requestLog);
  return requestLog;
}

export async function handleApi(
  request: Request,
  env: Env,
  ctx: ExecutionContext,
): Promise<Response> {
  return api.fetch(request, env, ctx);
}
