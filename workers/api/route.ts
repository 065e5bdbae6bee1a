/** The context and the definition of a route of the API, and the errors that many routes throw. */
import { createRoute, OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { waitUntil } from "cloudflare:workers";
import type { Context, MiddlewareHandler } from "hono";
import { createMiddleware } from "hono/factory";
import { routePath } from "hono/route";
import { z, type ZodError, type ZodType } from "zod";
import type { ErrorCode } from "../../protocol/errors.ts";
import { describeIssue, formatPath } from "../../protocol/schemas/issue-messages.ts";
import type { Config } from "../config/config.ts";
import type { Env } from "../env.ts";
import { ApiError, describeError } from "../errors.ts";
import type { HashCaller } from "../identity/accounts/password-hashing.ts";
import { log } from "../../shared/log.ts";
import type { Database } from "../store/database.ts";
import type { ApprovalRefusal } from "../store/organizations/approval.ts";
import type { Principal } from "../store/accounts/sessions.ts";
import type { CallerActor, MemberActor } from "../store/locks.ts";
import type { AgentToken, MasterKey } from "../store/tokens/tokens.ts";
import { replaceBadRequestCode } from "./bad-request-code.ts";
import { requireParseableJson, requireReadableJson } from "./json-body.ts";
import type { ResponseHeader } from "./reference/headers.ts";
import type { SecurityScheme } from "./reference/security.ts";

z.config({ customError: describeIssue });

export interface ApiEnv {
  Bindings: Env;
  Variables: {
    requestId: string;
    config: Config;
    db: Database;
    /** The IP address of the caller; empty when it is unknown. */
    address: string;
    bodyBytes: number;
    /** Set by `allowRead`, whose handler reads with `readAsCaller`. */
    claimant?: Claimant;
    /** Set by `allow`. */
    principal: Principal;
    accessToken: string;
    /** Set by `allowSession`. */
    session: OwnSession;
    /** Set by `allowOrMasterKey` instead of `principal` when the bearer is a master key. */
    masterKey?: MasterKey;
    /** Set by `allowOrAgent` instead of `principal` when the bearer is a capability token. */
    agentToken?: AgentToken;
    /** Why an agent was refused, for the log: its response has status 101 in any case. */
    refusal: string;
  };
}
export type ApiContext = Context<ApiEnv>;

/** A caller whose token is signed by this service and has not expired. It may have been revoked. */
export interface Claimant {
  /** The organization whose rows the caller reads. */
  orgId: string;
  /** Whether the token names another organization. */
  isFromElsewhere: boolean;
  /** Names the caller, the organization and the permission. */
  key: string;
  /** Sets the variables of the context that say who calls. @throws ApiError unless the caller has the permission now. */
  checkRights(this: void, db: Database): Promise<void>;
}

/** The session of an access token, even if its user has left the organization that the token names. */
interface OwnSession {
  userId: string;
  sessionId: string;
  /** null: its user is no longer a member of the organization. */
  orgId: string | null;
}

/** The router of one file of routes. */
export function createRouter(): OpenAPIHono<ApiEnv> {
  return new OpenAPIHono<ApiEnv>({
    defaultHook(result, c) {
      if (!result.success) throw invalidInput(c, result);
    },
  });
}

interface InvalidInput {
  target: string;
  error: Pick<ZodError, "issues">;
}

export function invalidInput(c: ApiContext, { target, error }: InvalidInput): ApiError {
  // The framework passes the values of a repeated parameter as a list.
  const isRepeated = (path: PropertyKey[]) =>
    target === "query" && (c.req.queries(String(path[0]))?.length ?? 0) > 1;
  if (target === "param") return unknownParameter(routePath(c), String(error.issues[0]?.path[0]));
  const fields = error.issues.map(({ path, message }) => ({
    path: formatPath(path),
    message: isRepeated(path) ? "must be given once" : message,
  }));
  return new ApiError("invalid_request", describeInvalid(target, fields[0]), { fields });
}

/** Names the first invalid field, unless its path contains characters that the caller chose freely. */
function describeInvalid(
  target: string,
  field: { path: string; message: string } | undefined,
): string {
  const part = target === "json" ? "request body" : "query string";
  if (!field || !/^[\w.[\]]*$/.test(field.path)) {
    return `The ${part} is not valid: each entry of fields names an invalid field and its rule.`;
  }
  if (target === "json" || field.path === "") return describeField(field, part);
  return `The query parameter ${field.path} ${field.message}.`;
}

export function notFound(resource: string, key = "id"): ApiError {
  return new ApiError("not_found", `There is no ${resource} with this ${key}.`);
}

/** The resource that a parameter of a path names, by the segment before the parameter. */
const RESOURCE_BY_SEGMENT: Partial<Record<string, string>> = {
  connections: "connected agent",
  devices: "device",
  domains: "domain",
  inspector: "captured request",
  invitations: "invitation",
  members: "member",
  orgs: "organization",
  "private-networks": "private network",
  projects: "project",
  "reserved-subdomains": "reserved subdomain",
  sessions: "session",
  tokens: "token",
  tunnels: "tunnel",
  "webhook-receivers": "webhook receiver",
};

/** A parameter that no resource can have is answered like one that no resource has. */
function unknownParameter(pattern: string, parameter: string): ApiError {
  const segments = pattern.split("/");
  const segment = segments[segments.indexOf(`:${parameter}`) - 1] ?? "";
  const key = ["slug", "nonce", "user_id"].includes(parameter) ? parameter.replace("_", " ") : "id";
  return notFound(RESOURCE_BY_SEGMENT[segment] ?? "resource", key);
}

export function noRoute(headers: Record<string, string> = {}): ApiError {
  return new ApiError("not_found", "There is no route at this path.", { headers });
}

/** For requests that only an approved organization may send (`REQUIRE_ORG_APPROVAL`). */
export function organizationNotApproved(refusal: ApprovalRefusal): ApiError {
  const message =
    refusal === "organization_pending"
      ? "The organization is waiting for approval by the operator of this server."
      : "The operator of this server did not approve the organization.";
  return new ApiError("forbidden", message);
}

/** An organization may have as many ports of a relay as stay free for others. */
export function portShareUsed(): ApiError {
  return new ApiError(
    "conflict",
    "The organization already has its share of relay ports: as many as stay free for others. Delete a tunnel or network that has a port; if an agent has served it, the port counts for another 24 hours.",
  );
}

/**
 * @param path empty for the whole body.
 * @param message continues the name of the field, as those of `describeIssue` do.
 */
export function invalidField(path: string, message: string): ApiError {
  return new ApiError("invalid_request", describeField({ path, message }), {
    fields: [{ path, message }],
  });
}

/** @param whole the part of the request that an empty path names. */
export function describeField(
  { path, message }: { path: string; message: string },
  whole = "request body",
): string {
  return path === "" ? `The ${whole} ${message}.` : `The field ${path} ${message}.`;
}

export function getMemberActor(c: ApiContext): MemberActor {
  const { orgId, userId, role, sessionId } = c.var.principal;
  return { orgId, userId, role, sessionId, ip: c.var.address };
}

/** After `allowOrAgent`. The audit log attributes what an agent does to the owner of its token, and names the token. */
export function getCallerActor(c: ApiContext): CallerActor {
  const { agentToken, address: ip } = c.var;
  if (!agentToken) return getMemberActor(c);
  const { orgId, createdBy: userId, id: tokenId, nonce: agentNonce } = agentToken;
  return { orgId, userId, tokenId, agentNonce, ip };
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
  /** It requires one of these credentials. */
  security?: readonly SecurityScheme[];
  failures: readonly ErrorCode[];
  /** A sentence for the document that says what it requires. */
  requirement?: string;
}

type RequestConfig = Required<NonNullable<RouteConfig["request"]>>;
type ResponseConfig = RouteConfig["responses"][string];

interface RouteDefinition {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** With its parameters in braces. */
  path: string;
  /** Names the operation in the document and in the clients that are generated from it. */
  operationId: string;
  summary: string;
  description?: string;
  /** Runs before the guard. */
  middleware?: MiddlewareHandler<ApiEnv>;
  guard?: Guard | readonly Guard[];
  params?: RequestConfig["params"];
  query?: RequestConfig["query"];
  body?: ZodType;
  /** Instead of `body` where a request without a body is valid too. */
  optionalBody?: ZodType;
  /** The media type of a body that the handler reads itself. */
  rawBody?: string;
  /** A request body for the document. Default: one with the required fields. */
  example?: unknown;
  responses: Record<number, ResponseConfig>;
  /** Headers of its responses, besides those that every response has. */
  headers?: readonly ResponseHeader[];
  /** Whether responses, refusals too, may set or clear a cookie. */
  setsCookie?: true;
  /** Whether a browser gets its refusals as pages. */
  hasErrorPages?: true;
  /** The code of every 400. Default: `invalid_request`. */
  badRequestCode?: ErrorCode;
  /** Only those that neither the guard nor the parameters nor the body imply. */
  failures?: readonly ErrorCode[];
}

/** A definition, completed with what its guards, parameters and body imply, for the document. */
export interface DocumentedRoute {
  method: RouteDefinition["method"];
  path: string;
  operationId: string;
  summary: string;
  description: string;
  security: Record<string, string[]>[];
  request: {
    params?: ZodType;
    query?: ZodType;
    body?: { required: boolean; content: DocumentedContent };
  };
  responses: Record<string, { description: string; content?: DocumentedContent }>;
  "x-failures": readonly ErrorCode[];
  "x-headers": readonly ResponseHeader[];
  "x-sets-cookie": boolean;
  "x-error-pages": boolean;
}

export type DocumentedContent = Partial<Record<string, { schema?: ZodType; example?: unknown }>>;

/**
 * A route for the router and the OpenAPI document. The failures that follow from its guard, its parameters and
 * its body are added to its responses; a definition lists only its own.
 */
export function route<const Definition extends RouteDefinition>(
  definition: Definition,
): OpenApiRoute<Definition> {
  const middleware = [
    ...(definition.middleware ? [definition.middleware] : []),
    ...(definition.badRequestCode ? [replaceBadRequestCode(definition.badRequestCode)] : []),
    ...listGuards(definition).flatMap((guard) => guard.middleware ?? []),
    ...requireJsonBody(definition),
  ];
  const config = { ...toDocumentedRoute(definition), middleware } as unknown as RouteConfig;
  return createRoute(config) as unknown as OpenApiRoute<Definition>;
}

/** Adds a route to the document only. Its handler is added to the router separately, such as that of a WebSocket. */
export function documentRoute(router: OpenAPIHono<ApiEnv>, definition: RouteDefinition): void {
  router.openAPIRegistry.registerPath(toDocumentedRoute(definition) as unknown as RouteConfig);
}

/**
 * An empty body, which the framework takes for invalid JSON, is a missing one, whatever its type: where the body is
 * optional, an empty object, with the defaults of its fields.
 */
function requireJsonBody(definition: RouteDefinition): MiddlewareHandler<ApiEnv>[] {
  const { body, optionalBody } = definition;
  if (body === undefined && optionalBody === undefined) return [];
  const params = definition.params as ZodType | undefined;
  return [
    createMiddleware<ApiEnv>(async (c, next) => {
      // The validator of the path, which runs later, answers 404.
      if (params?.safeParse(c.req.param()).success === false) return next();
      if (c.var.bodyBytes === 0) {
        if (body !== undefined) {
          throw invalidField("", "is required");
        }
        const headers = new Headers(c.req.raw.headers);
        headers.set("Content-Type", "application/json");
        c.req.raw = new Request(c.req.raw, { headers, body: "{}" });
      } else {
        requireReadableJson(c.req.header());
        requireParseableJson(new Uint8Array(await c.req.arrayBuffer()));
      }
      await next();
    }),
  ];
}

function listGuards({ guard }: RouteDefinition): readonly Guard[] {
  return [guard ?? []].flat();
}

function toDocumentedRoute(definition: RouteDefinition): DocumentedRoute {
  const { method, path, operationId, summary, description, params, query } = definition;
  const guards = listGuards(definition);
  const requirements = guards.flatMap(({ requirement }) => requirement ?? []);
  const schemes = guards.flatMap((guard) => guard.security ?? []);
  return {
    method,
    path,
    operationId,
    summary,
    description: [description ?? [], requirements].flat().join("\n\n"),
    security: schemes.map((scheme) => ({ [scheme]: [] })),
    request: {
      ...(params && { params }),
      ...(query && { query }),
      ...describeBody(definition),
    },
    responses: definition.responses as DocumentedRoute["responses"],
    "x-failures": [...impliedFailures(definition, guards), ...(definition.failures ?? [])],
    "x-headers": definition.headers ?? [],
    "x-sets-cookie": definition.setsCookie ?? false,
    "x-error-pages": definition.hasErrorPages ?? false,
  };
}

function describeBody({ body, optionalBody, rawBody, example }: RouteDefinition) {
  const schema = body ?? optionalBody;
  if (rawBody !== undefined) return { body: { required: true, content: { [rawBody]: {} } } };
  if (schema === undefined) return {};
  const media = { schema, ...(example !== undefined && { example }) };
  return { body: { required: body !== undefined, content: { "application/json": media } } };
}

function impliedFailures(
  { method, params, query, body, optionalBody, badRequestCode }: RouteDefinition,
  guards: readonly Guard[],
): ErrorCode[] {
  const hasBody = body !== undefined || optionalBody !== undefined;
  const isSignedIn = guards.some(({ security }) => security?.includes("accessToken"));
  return [
    ...(query || hasBody ? [badRequestCode ?? ("invalid_request" as const)] : []),
    ...guards.flatMap((guard) => guard.failures),
    ...(params ? (["not_found"] as const) : []),
    // Changes of one kind by an organization are bounded, and its deletions are not.
    ...(isSignedIn && ["post", "put", "patch"].includes(method) ? (["rate_limited"] as const) : []),
    ...(hasBody ? (["unsupported_media_type"] as const) : []),
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
