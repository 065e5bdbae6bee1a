/** What every route of the API has at hand, and the words in which routes describe themselves. */
import { OpenAPIHono } from "@hono/zod-openapi";
import { waitUntil } from "cloudflare:workers";
import type { Context } from "hono";
import type { ZodError, ZodType } from "zod";
import { ErrorBody, STATUS_BY_CODE, type ErrorCode } from "../../protocol/errors.ts";
import type { Config } from "../config/config.ts";
import type { Env } from "../env.ts";
import { ApiError, describeError } from "../errors.ts";
import { log } from "../../shared/log.ts";
import type { Database } from "../store/database.ts";
import type { Principal } from "../store/accounts/sessions.ts";
import type { CallerActor, MemberActor } from "../store/locks.ts";
import type { AgentToken, MasterKey } from "../store/tokens/tokens.ts";

export interface ApiEnv {
  Bindings: Env;
  Variables: {
    requestId: string;
    config: Config;
    db: Database;
    /** Of the caller; empty when nothing tells. */
    address: string;
    /** Set by `allow`. */
    principal: Principal;
    accessToken: string;
    /** Set instead by `allowOrMasterKey`, when a machine came with one. */
    masterKey?: MasterKey;
    /** Set instead by `allowOrAgent`, when an agent came with its token. */
    agentToken?: AgentToken;
    /** Why an agent was refused, for the log: the status of its answer can't say. */
    refusal: string;
  };
}
export type ApiContext = Context<ApiEnv>;

/** An area of the API: a file beside this one. */
export function newArea(): OpenAPIHono<ApiEnv> {
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
  // A path that can't name anything leads nowhere, as a route that does not exist.
  if (target === "param") return notFound();
  return new ApiError("invalid_request", `The ${target} is not valid.`, {
    fields: error.issues.map(({ path, message }) => ({ path: path.join("."), message })),
  });
}

export function notFound(what = "such thing"): ApiError {
  return new ApiError("not_found", `There is no ${what} here.`);
}

export function invalidField(path: string, message: string): ApiError {
  return new ApiError("invalid_request", `${path} ${message}.`, { fields: [{ path, message }] });
}

/** The role of the caller was another one by the time of the change. */
export function roleChanged(): ApiError {
  return new ApiError("forbidden", "Your role has just changed.");
}

export function actorOf(c: ApiContext): MemberActor {
  const { orgId, userId, role } = c.var.principal;
  return { orgId, userId, role, ip: c.var.address };
}

/** After `allowOrAgent`. What an agent does is its token's owner's in the audit log. */
export function getCaller(c: ApiContext): CallerActor {
  const { agentToken, address: ip } = c.var;
  if (!agentToken) return actorOf(c);
  const { orgId, createdBy: userId, id: tokenId } = agentToken;
  return { orgId, userId, tokenId, ip };
}

/** For work that the answer must not wait for. Nobody hears of its failure but the log. */
export function afterAnswer(c: ApiContext, failure: string, work: Promise<unknown>): void {
  const { requestId } = c.var;
  const done = work.catch((error: unknown) => {
    log("error", failure, { requestId, cause: describeError(error) });
  });
  waitUntil(done);
}

// ── For route definitions ──

export function jsonBody<Schema extends ZodType>(schema: Schema) {
  return { required: true, content: { "application/json": { schema } } } as const;
}

export function answer<Schema extends ZodType>(description: string, schema: Schema) {
  return { description, content: { "application/json": { schema } } };
}

/** The failures that a route is known to answer with, by status. */
export function failures(...codes: ErrorCode[]) {
  const byStatus: Record<number, { description: string; content: object }> = {};
  for (const status of new Set(codes.map((code) => STATUS_BY_CODE[code]))) {
    const names = codes.filter((code) => STATUS_BY_CODE[code] === status);
    byStatus[status] = {
      description: names.map((name) => `\`${name}\``).join(", "),
      content: { "application/json": { schema: ErrorBody } },
    };
  }
  return byStatus;
}
