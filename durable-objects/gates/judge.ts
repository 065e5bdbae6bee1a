/**
 * Whether a visitor gets through a tunnel's gates: the part that needs no state of the tunnel. The edge runs
 * it so that the object need not, and the object whenever the edge has not judged by the newest gates.
 */
import type { JwtValidation } from "../../protocol/resources/policies.ts";
import { targetOf } from "../tunnel/heads.ts";
import { isDenied } from "./paths.ts";
import { retryAfter, type Refusal } from "./refusal.ts";
import type { BasicAuth, Gates } from "./settings.ts";

export interface Visitor {
  /** Of the target, as it came, without the query. */
  path: string;
  authorization: string | null;
  address: string;
}

export function visitorOf(request: Request, address: string): Visitor {
  const target = targetOf(request.url);
  const query = target.indexOf("?");
  const path = query < 0 ? target : target.slice(0, query);
  return { path, authorization: request.headers.get("authorization"), address };
}

export type PasswordVerdict =
  "right" | "wrong" | { tooManyWrongForMs: number } | { busyForMs: number };
export type TokenVerdict = "good" | "missing" | "bad" | { issuerDownForMs: number };

/** What takes time or a library: given, so that the order and the answers can be tried without. */
export interface Checks {
  password(auth: BasicAuth, visitor: Visitor): Promise<PasswordVerdict>;
  token(rule: JwtValidation, authorization: string | null): Promise<TokenVerdict>;
}

/**
 * In the order of the gates. Maintenance stands before these, and the rate limit behind them, in the object;
 * the identity gate's place is between the password and the paths.
 *
 * @returns null when the visitor may pass.
 */
export async function judge(
  gates: Gates,
  visitor: Visitor,
  checks: Checks,
): Promise<Refusal | null> {
  const { basicAuth, deny, jwt, realm } = gates;
  if (basicAuth !== null) {
    const verdict = await checks.password(basicAuth, visitor);
    if (verdict !== "right") return passwordRefusal(verdict, realm);
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

function tokenRefusal(verdict: Exclude<TokenVerdict, "good">): Refusal {
  if (typeof verdict === "object") return retryAfter("unavailable", verdict.issuerDownForMs);
  // Whoever sent no token is told of no error (RFC 6750 §3.1).
  const challenge = verdict === "missing" ? "Bearer" : 'Bearer error="invalid_token"';
  return { code: "unauthorized", headers: { "www-authenticate": challenge } };
}
