/** The parts of a visitor's request that a tunnel's gates read, and the slow checks that the gates ask for. */
import { toPlainName } from "../protocol/header-names.ts";
import { getAuthority } from "../protocol/hosts.ts";
import type { JwtValidation } from "../protocol/schemas/access/policies.ts";
import { getRequestTarget, splitTarget } from "../protocol/request-target.ts";
import type { IdentityGate, IdentityVerdict } from "./identity.ts";
import type { BasicAuth } from "./settings.ts";

export interface AccessRequest {
  tunnelId: string;
  method: string;
  /** The path of the request target, unchanged and without the query. */
  path: string;
  /** Reads the paths in headers that some frameworks take instead. It looks at every header. */
  getHeaderPaths: () => string[];
  authorization: string | null;
  address: string;
  /** The requested host and port, as the visitor wrote them. */
  authority: string;
  cookie: string | null;
  /** The origin of the page that made the request: browsers send it with every request that may change something. */
  origin: string | null;
  isWebSocket: boolean;
}

/** Frameworks that support servers which rewrite paths take the original path from these headers, also from a visitor's. */
const PATH_HEADERS = new Set(["x-original-url", "x-rewrite-url"]);

export function readAccessRequest(
  request: Request,
  tunnelId: string,
  address: string,
): AccessRequest {
  const { path } = splitTarget(getRequestTarget(request.url));
  const { headers, method, url } = request;
  return {
    tunnelId,
    method,
    path,
    getHeaderPaths: () => readHeaderPaths(headers),
    authorization: headers.get("authorization"),
    address,
    authority: getAuthority(url),
    cookie: headers.get("cookie"),
    origin: headers.get("origin"),
    isWebSocket: headers.has("upgrade"),
  };
}

function readHeaderPaths(headers: Headers): string[] {
  return (
    [...headers]
      .filter(([name]) => PATH_HEADERS.has(toPlainName(name)))
      // Repeated headers are joined with a comma, which a path can contain, too.
      .flatMap(([, value]) => [value, ...value.split(",").slice(1)])
      .map((value) => splitTarget(value.trim().replace(/^https?:\/\/[^/?]*/i, "")).path)
      .map((path) => (path.startsWith("/") ? path : `/${path}`))
  );
}

export type PasswordVerdict =
  | "correct"
  | "wrong"
  | { tooManyWrongForMs: number }
  | { busyForMs: number };
export type TokenVerdict = "valid" | "missing" | "invalid" | { issuerDownForMs: number };

/** The slow checks, injected so that tests can run the gates without them. */
export interface Authenticators {
  password(auth: BasicAuth, request: AccessRequest): Promise<PasswordVerdict>;
  identity(gate: IdentityGate, request: AccessRequest): Promise<IdentityVerdict>;
  /** @param subdomain the tunnel's. */
  token(rule: JwtValidation, subdomain: string, request: AccessRequest): Promise<TokenVerdict>;
}
