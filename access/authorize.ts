/**
 * Whether a visitor's request passes a tunnel's gates. The edge runs this so that the object does not have to;
 * the object runs it when the edge did not authorize by the current gates.
 */
import type { AccessRequest, Authenticators, PasswordVerdict } from "./access-request.ts";
import type { Gates } from "./gates.ts";
import {
  FOREIGN_PAGE_MESSAGE,
  formatDeniedMessage,
  SIGN_IN_HEADER,
  type IdentityVerdict,
  type SignInStep,
} from "./identity.ts";
import { ADDRESS_REFUSED_MESSAGE, isAllowedAddress } from "./ip-allowlist.ts";
import { authorizeByPolicy } from "./policy-actions.ts";
import { withRetryAfter, type Refusal } from "./refusal.ts";

const PASSWORD_REQUIRED_MESSAGE = "This tunnel requires a username and a password.";

/**
 * Runs the gates in their fixed order. The object checks maintenance before them and the rate limit after them.
 *
 * @returns null when the request may pass.
 */
export async function authorize(
  gates: Gates,
  request: AccessRequest,
  authenticators: Authenticators,
): Promise<Refusal | null> {
  const { allowedCidrs = null, basicAuth, identity, realm } = gates;
  if (allowedCidrs !== null && !isAllowedAddress(allowedCidrs, request.address)) {
    return { code: "forbidden", by: "ip_allowlist", message: ADDRESS_REFUSED_MESSAGE };
  }
  if (basicAuth !== null) {
    const verdict = await authenticators.password(basicAuth, request);
    if (verdict !== "correct") return { ...toPasswordRefusal(verdict, realm), by: "password" };
  }
  if (identity !== null) {
    const verdict = await authenticators.identity(identity, request);
    if (verdict !== "allowed") return { ...toIdentityRefusal(verdict), by: "sign_in" };
  }
  return authorizeByPolicy(gates, request, authenticators);
}

function toPasswordRefusal(verdict: Exclude<PasswordVerdict, "correct">, realm: string): Refusal {
  if (verdict === "wrong") {
    const challenge = `Basic realm="${realm}"`;
    const headers = { "www-authenticate": challenge };
    return { code: "unauthorized", headers, message: PASSWORD_REQUIRED_MESSAGE };
  }
  if ("busyForMs" in verdict) return withRetryAfter("unavailable", verdict.busyForMs);
  return withRetryAfter("rate_limited", verdict.tooManyWrongForMs);
}

function toIdentityRefusal(verdict: Exclude<IdentityVerdict, "allowed">): Refusal {
  if (verdict === "signed_out") return { code: "unauthorized", headers: signInHeader("start") };
  if (verdict === "redeeming") return { code: "unauthorized", headers: signInHeader("finish") };
  if (verdict === "foreign_page") return { code: "forbidden", message: FOREIGN_PAGE_MESSAGE };
  if ("keysDownForMs" in verdict) return withRetryAfter("unavailable", verdict.keysDownForMs);
  const message = formatDeniedMessage(verdict.denied);
  return { code: "forbidden", message, headers: signInHeader("switch") };
}

function signInHeader(step: SignInStep): Record<string, string> {
  return { [SIGN_IN_HEADER]: step };
}
