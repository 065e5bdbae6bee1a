/**
 * Whether a visitor gets through a tunnel's gates: the part that needs no state of the tunnel. The edge runs
 * it so that the object need not, and the object whenever the edge has not judged by the newest gates.
 */
import { authorityOf } from "../protocol/hosts.ts";
import type { JwtValidation } from "../protocol/schemas/access/policies.ts";
import { getRequestTarget } from "../protocol/request-target.ts";
import { ADDRESS_REFUSED, isAllowedAddress } from "./addresses.ts";
import {
  deniedMessage,
  SIGN_IN_HEADER,
  type IdentityGate,
  type IdentityVerdict,
  type SignInStep,
} from "./identity.ts";
import { isDenied } from "./paths.ts";
import { retryAfter, type Refusal } from "./refusal.ts";
import type { BasicAuth, Gates } from "./settings.ts";

export interface Visitor {
  /** Of the target, as it came, without the query. */
  path: string;
  authorization: string | null;
  address: string;
  /** The host that was asked for, as it was written. */
  authority: string;
  cookie: string | null;
}

export function visitorOf(request: Request, address: string): Visitor {
  const target = getRequestTarget(request.url);
  const query = target.indexOf("?");
  const path = query < 0 ? target : target.slice(0, query);
  const { headers, url } = request;
  return {
    path,
    authorization: headers.get("authorization"),
    address,
    authority: authorityOf(url),
    cookie: headers.get("cookie"),
  };
}

export type PasswordVerdict =
  "right" | "wrong" | { tooManyWrongForMs: number } | { busyForMs: number };
export type TokenVerdict = "good" | "missing" | "bad" | { issuerDownForMs: number };

/** What takes time or a library: given, so that the order and the answers can be tried without. */
export interface Checks {
  password(auth: BasicAuth, visitor: Visitor): Promise<PasswordVerdict>;
  identity(gate: IdentityGate, visitor: Visitor): Promise<IdentityVerdict>;
  token(rule: JwtValidation, authorization: string | null): Promise<TokenVerdict>;
}

/**
 * In the order of the gates. Maintenance stands before these, and the rate limit behind them, in the object.
 *
 * @returns null when the visitor may pass.
 */
export async function judge(
  gates: Gates,
  visitor: Visitor,
  checks: Checks,
): Promise<Refusal | null> {
  const { allowedCidrs = null, basicAuth, identity, deny, jwt, realm } = gates;
  if (allowedCidrs !== null && !isAllowedAddress(allowedCidrs, visitor.address)) {
    return { code: "forbidden", message: ADDRESS_REFUSED };
  }
  if (basicAuth !== null) {
    const verdict = await checks.password(basicAuth, visitor);
    if (verdict !== "right") return passwordRefusal(verdict, realm);
  }
  if (identity !== null) {
    const verdict = await checks.identity(identity, visitor);
    if (verdict !== "allowed") return identityRefusal(verdict);
  }
  if (deny.length > 0 && isDenied(deny, visitor.path)) return { code: "forbidden" };
  if (jwt !== null) {
    const verdict = await checks.token(jwt, visitor.authorization);
    if (verdict !== "good") return tokenRefusal(verdict);
  }
  return null;
}

function passwordRefusal(verdict: Exclude<PasswordVerdict, "right">, realm: string): Refusal {
  if (verdict === "wrong") {
    const challenge = `Basic realm="${realm}"`;
    return { code: "unauthorized", headers: { "www-authenticate": challenge } };
  }
  if ("busyForMs" in verdict) return retryAfter("unavailable", verdict.busyForMs);
  return retryAfter("rate_limited", verdict.tooManyWrongForMs);
}

function identityRefusal(verdict: Exclude<IdentityVerdict, "allowed">): Refusal {
  if (verdict === "unknown") return { code: "unauthorized", headers: signIn("start") };
  if (verdict === "arriving") return { code: "unauthorized", headers: signIn("finish") };
  if ("keysDownForMs" in verdict) return retryAfter("unavailable", verdict.keysDownForMs);
  const message = deniedMessage(verdict.denied);
  return { code: "forbidden", message, headers: signIn("switch") };
}

function signIn(step: SignInStep): Record<string, string> {
  return { [SIGN_IN_HEADER]: step };
}

function tokenRefusal(verdict: Exclude<TokenVerdict, "good">): Refusal {
  if (typeof verdict === "object") return retryAfter("unavailable", verdict.issuerDownForMs);
  // Whoever sent no token is told of no error (RFC 6750 §3.1).
  const challenge = verdict === "missing" ? "Bearer" : 'Bearer error="invalid_token"';
  return { code: "unauthorized", headers: { "www-authenticate": challenge } };
}
