/** The options of `expose()`, checked as the command line checks its own. Every mistake is a TypeError. */
import { explainError } from "../error-message.ts";
import { z } from "zod";
import { describeIssue, formatPath } from "../../protocol/schemas/issue-messages.ts";
import { Label } from "../../protocol/schemas/scalars.ts";
import { TrafficPolicy } from "../../protocol/schemas/access/policies.ts";
import { formatSuggestion } from "../options/suggestion.ts";
import { findTarget } from "../files/files-target.ts";
import { parseBasicAuth } from "../gates/basic-auth.ts";
import { OFF } from "../gates/off.ts";
import { parsePublicUrl } from "../gates/options.ts";
import { UsageError } from "../options.ts";
import { checkAddedHeader } from "../origin/added-headers.ts";
import { HandlerDispatcher } from "../origin/handler.ts";
import { parseHostMode } from "../origin/host-header.ts";
import { createLocalTarget, type Target } from "../origin/target.ts";
import type { ServerAccess } from "../server-access.ts";
import type { HttpTunnelOptions } from "../tunnel/http-tunnel.ts";
import { requireSharedName } from "../tunnel/tunnel-options.ts";
import type { ExposeOptions } from "./types.ts";

const NO_TARGET = "expose() needs exactly one of port, origin and fetch";
const BASE64 = /^[\w+/=\s-]+$/;

const isFunction = (value: unknown): boolean => typeof value === "function";
/** Not `instanceof`: test environments such as jsdom replace the classes of Node.js. */
const isSignal = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "aborted" in value && "addEventListener" in value;
const isToken = (value: unknown): boolean =>
  typeof value === "string" ? BASE64.test(value) : ArrayBuffer.isView(value);

/** An unknown name is a mistake, because a mistyped `basicAuth` would leave the tunnel open to everyone. */
const FIELDS = {
  port: z.int().min(1).max(65_535).optional(),
  origin: z.string().min(1).optional(),
  directoryListing: z.boolean().optional(),
  fetch: z.custom(isFunction, "must be a function").optional(),
  server: z.string().optional(),
  token: z.custom(isToken, "must be the token's bytes, or those in base64").optional(),
  tokenFile: z.string().optional(),
  caFile: z.string().optional(),
  subdomain: Label.optional(),
  url: z.string().optional(),
  basicAuth: z.string().optional(),
  policy: TrafficPolicy.optional(),
  headers: z.record(z.string(), z.string()).optional(),
  project: Label.optional(),
  ttlSeconds: z.int().min(1).optional(),
  hostHeader: z.string().min(1).optional(),
  insecureUpstream: z.boolean().optional(),
  pool: z.boolean().optional(),
  signal: z.custom(isSignal, "must be an AbortSignal").optional(),
} satisfies Record<keyof ExposeOptions, z.ZodType>;
const Fields = z.strictObject(FIELDS);

/** @throws TypeError */
export function parseExposeOptions(
  options: ExposeOptions,
): Omit<HttpTunnelOptions, keyof ServerAccess> {
  const isPolicyOff = options?.policy === OFF;
  const fields = isPolicyOff ? { ...options, policy: undefined } : options;
  const parsed = Fields.safeParse(fields, { error: describeIssue });
  if (!parsed.success) throw new TypeError(describeMistake(parsed.error.issues[0]!));
  const { subdomain, url, basicAuth, headers = {}, token, tokenFile } = options;
  if (token !== undefined && tokenFile !== undefined)
    throw new TypeError("expose() needs token or tokenFile, not both");
  if (subdomain !== undefined && url !== undefined)
    throw new TypeError("expose() needs subdomain or url, not both");
  if (options.pool) asTypeError(() => requireSharedName(url, subdomain));
  return asTypeError(() => ({
    target: getTarget(options),
    originOptions: {
      header: Object.entries(headers).map((header) => checkAddedHeader(header, "headers")),
      "host-header": parseHostMode(options.hostHeader ?? "auto", "hostHeader"),
      "insecure-upstream": options.insecureUpstream ?? false,
    },
    pool: options.pool ?? false,
    settings: { subdomain, project: options.project, ttl: options.ttlSeconds },
    publicUrl: url === undefined ? undefined : parsePublicUrl(url, "url"),
    gates: {
      basicAuth: basicAuth === undefined ? undefined : parseBasicAuth(basicAuth, "basicAuth"),
      policy: isPolicyOff ? null : parsed.data.policy,
    },
  }));
}

/** Calls a parser of the command line. @throws TypeError in place of its `UsageError`. */
export function asTypeError<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    throw toTypeError(error);
  }
}

/** A `UsageError` names options as `--host-header`, which is `hostHeader` here. @returns any other error as it is. */
export function toTypeError(error: unknown): unknown {
  if (!(error instanceof UsageError)) return error;
  const message = explainError(error).replace(/--([a-z][a-z-]*)/g, (_, name: string) =>
    name.replace(/-(.)/g, (__, letter: string) => letter.toUpperCase()),
  );
  return new TypeError(`expose(): ${message}`);
}

function getTarget({ port, origin, fetch: handler, directoryListing }: ExposeOptions): Target {
  const given = [port, origin, handler].filter((option) => option !== undefined);
  if (given.length !== 1) throw new TypeError(NO_TARGET);
  if (handler)
    return createLocalTarget("function", (context) => new HandlerDispatcher(handler, context));
  return findTarget(origin ?? String(port), { directoryListing });
}

function describeMistake(issue: z.core.$ZodIssue): string {
  if (issue.code === "unrecognized_keys" && issue.path.length === 0) {
    const [key = ""] = issue.keys;
    return `expose() has no option ${key}${formatSuggestion(key, Object.keys(FIELDS))}`;
  }
  if (issue.path.length === 0) return NO_TARGET;
  return `expose(): ${formatPath(issue.path)} ${issue.message}`;
}
