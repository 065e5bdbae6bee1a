/** The parts of a visitor's request that a tunnel's gates read, and the slow checks that the gates ask for. */
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
  authorization: string | null;
  address: string;
  /** The requested host and port, as the visitor wrote them. */
  authority: string;
  cookie: string | null;
  /** The origin of the page that made the request: browsers send it with every request that may change something. */
  origin: string | null;
  isWebSocket: boolean;
}

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
    authorization: headers.get("authorization"),
    address,
    authority: getAuthority(url),
    cookie: headers.get("cookie"),
    origin: headers.get("origin"),
    isWebSocket: headers.has("upgrade"),
  };
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
