/** What every route of the API uses: its context, its definition, and the errors that many routes throw. */
import { createRoute, OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { waitUntil } from "cloudflare:workers";
import type { Context, MiddlewareHandler } from "hono";
import { z, type ZodError, type ZodType } from "zod";
import { ErrorBody, STATUS_BY_CODE, type ErrorCode } from "../../protocol/errors.ts";
import { describeIssue } from "../../protocol/schemas/issue-messages.ts";
import type { Config } from "../config/config.ts";
import type { Env } from "../env.ts";
import { ApiError, describeError } from "../errors.ts";
import type { HashCaller } from "../identity/accounts/password-hashing.ts";
import { log } from "../../shared/log.ts";
import type { Database } from "../store/database.ts";
import type { Principal } from "../store/accounts/sessions.ts";
import type { CallerActor, MemberActor } from "../store/locks.ts";
import type { AgentToken, MasterKey } from "../store/tokens/tokens.ts";

z.config({ customError: describeIssue });

export interface ApiEnv {
  Bindings: Env;
  Variables: {
    requestId: string;
    config: Config;
    db: Database;
    /** The IP address of the caller; empty when it is unknown. */
    address: string;
    /** Set by `allow`. */
    principal: Principal;
    accessToken: string;
    /** Set by `allowOrMasterKey` instead of `principal` when the bearer is a master key. */
    masterKey?: MasterKey;
    /** Set by `allowOrAgent` instead of `principal` when the bearer is a capability token. */
    agentToken?: AgentToken;
    /** Why an agent was refused, for the log: its response has status 101 in any case. */
    refusal: string;
  };
}
export type ApiContext = Context<ApiEnv>;

/** The router of one file of routes. */
export function createRouter(): OpenAPIHono<ApiEnv> {
  return new OpenAPIHono<ApiEnv>({
    defaultHook(result) {
      if (!result.success) throw invalidInput(result);
    },
  });
}

export function invalidInput({
  target,
  error,
}: {
  target: string;
  error: Pick<ZodError, "issues">;
}): ApiError {
  // A path parameter that no resource can have is answered like a route that does not exist.
  if (target === "param") return notFound();
  const part = target === "json" ? "request body" : "query string";
  return new ApiError("invalid_request", `The ${part} is not valid.`, {
    fields: error.issues.map(({ path, message }) => ({ path: path.join("."), message })),
  });
}

export function notFound(resource?: string, key = "id"): ApiError {
  const what = resource === undefined ? "nothing at this path" : `no ${resource} with this ${key}`;
  return new ApiError("not_found", `There is ${what}.`);
}

/** @param message continues the name of the field, as those of `describeIssue` do. */
export function invalidField(path: string, message: string): ApiError {
  return new ApiError("invalid_request", describeField({ path, message }), {
    fields: [{ path, message }],
  });
}

export function describeField({ path, message }: { path: string; message: string }): string {
  return path === "" ? `The request body ${message}.` : `The field ${path} ${message}.`;
}

export function getMemberActor(c: ApiContext): MemberActor {
  const { orgId, userId, role, sessionId } = c.var.principal;
  return { orgId, userId, role, sessionId, ip: c.var.address };
}

/** After `allowOrAgent`. The audit log attributes what an agent does to the owner of its token. */
export function getCallerActor(c: ApiContext): CallerActor {
  const { agentToken, address: ip } = c.var;
  if (!agentToken) return getMemberActor(c);
  const { orgId, createdBy: userId, id: tokenId } = agentToken;
  return { orgId, userId, tokenId, ip };
}

/** @param account the address of the account whose password is hashed, or its id. */
export function getHashCaller(c: ApiContext, account: string): HashCaller {
  return { env: c.env, config: c.var.config, address: c.var.address, account };
}

/** For work that the response must not wait for. A failure is only logged. */
export function runInBackground(c: ApiContext, failure: string, work: Promise<unknown>): void {
  const { requestId } = c.var;
  const logged = work.catch((error: unknown) => {
    log("error", failure, { requestId, cause: describeError(error) });
  });
  waitUntil(logged);
}

// ── Route definitions ──

/** Runs before a route's handler, and adds to the document what it requires and how it refuses. */
export interface Guard {
  middleware?: MiddlewareHandler<ApiEnv>;
  /** Set when the guard requires a bearer token. */
  security?: { bearer: string[] }[];
  failures: readonly ErrorCode[];
}

type RequestConfig = Required<NonNullable<RouteConfig["request"]>>;
type ResponseConfig = RouteConfig["responses"][string];

interface RouteDefinition {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** With its parameters in braces. */
  path: string;
  summary: string;
  description?: string;
  /** Runs before the guard. */
  middleware?: MiddlewareHandler<ApiEnv> | readonly MiddlewareHandler<ApiEnv>[];
  guard?: Guard | readonly Guard[];
  params?: RequestConfig["params"];
  query?: RequestConfig["query"];
  body?: ZodType;
  /** Instead of `body` where a request without a body is valid too. */
  optionalBody?: ZodType;
  responses: Record<number, ResponseConfig>;
  /** Only those that neither the guard nor the parameters nor the body imply. */
  failures?: readonly ErrorCode[];
}

/**
 * A route for the router and the OpenAPI document. The failures that follow from its guard, its parameters and
 * its body are added to its responses; a definition lists only its own.
 */
export function route<const Definition extends RouteDefinition>(
  definition: Definition,
): OpenApiRoute<Definition> {
  const { method, path, summary, description, params, query, responses } = definition;
  const guards = [definition.guard ?? []].flat();
  const middleware = [
    ...[definition.middleware ?? []].flat(),
    ...guards.flatMap((guard) => guard.middleware ?? []),
  ];
  const security = guards.flatMap((guard) => guard.security ?? []);
  const schema = definition.body ?? definition.optionalBody;
  const body = schema && {
    required: definition.body !== undefined,
    content: { "application/json": { schema } },
  };
  const codes = [...impliedFailures(definition, guards), ...(definition.failures ?? [])];
  const config = {
    method,
    path,
    summary,
    ...(description !== undefined && { description }),
    ...(security.length > 0 && { security }),
    middleware,
    request: { ...(params && { params }), ...(query && { query }), ...(body && { body }) },
    responses: { ...responses, ...failureResponses(...codes) },
  };
  return createRoute(config) as unknown as OpenApiRoute<Definition>;
}

function impliedFailures(
  { params, query, body, optionalBody }: RouteDefinition,
  guards: readonly Guard[],
): ErrorCode[] {
  const hasBody = body !== undefined || optionalBody !== undefined;
  return [
    ...(query || hasBody ? (["invalid_request"] as const) : []),
    ...guards.flatMap((guard) => guard.failures),
    ...(params ? (["not_found"] as const) : []),
    ...(hasBody ? (["payload_too_large", "unsupported_media_type"] as const) : []),
  ];
}

/** The type of the handler follows from this: its validated input, and the responses that it may return. */
type OpenApiRoute<Definition extends RouteDefinition> = Pick<
  Definition,
  "method" | "path" | "responses"
> & {
  request: Pick<Definition, Extract<keyof Definition, "params" | "query">> &
    RequestBody<Definition>;
};

type RequestBody<Definition> = Definition extends
  | { body: infer Schema }
  | { optionalBody: infer Schema }
  ? { body: { content: { "application/json": { schema: Schema } } } }
  : unknown;

export function jsonResponse<Schema extends ZodType>(description: string, schema: Schema) {
  return { description, content: { "application/json": { schema } } };
}

/** The responses with these error codes, by status. */
export function failureResponses(...codes: ErrorCode[]) {
  const byStatus: Record<number, { description: string; content: object }> = {};
  for (const status of new Set(codes.map((code) => STATUS_BY_CODE[code]))) {
    const names = new Set(codes.filter((code) => STATUS_BY_CODE[code] === status));
    byStatus[status] = {
      description: [...names].map((name) => `\`${name}\``).join(", "),
      content: { "application/json": { schema: ErrorBody } },
    };
  }
  return byStatus;
}
