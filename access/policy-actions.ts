/**
 * The effects of a traffic policy's actions. A new kind of action starts in
 * `protocol/schemas/access/policies.ts`; `addEffect` does not compile until it has an effect here.
 */
import type {
  JwtValidation,
  PolicyAction,
  RateLimit,
  TrafficPolicy,
} from "../protocol/schemas/access/policies.ts";
import { toPlainName } from "../protocol/header-names.ts";
import type { AccessRequest, Authenticators, TokenVerdict } from "./access-request.ts";
import { checkPath, type PathVerdict } from "./paths/denied-paths.ts";
import { withRetryAfter, type Refusal } from "./refusal.ts";

const LONG_PATH_MESSAGE =
  "The address has an encoded or otherwise ambiguous path that is too long for the rules of this tunnel.";
const TOKEN_MISSING_MESSAGE =
  "This tunnel requires a JWT. Send it in the header `Authorization: Bearer <JWT>`.";
const TOKEN_INVALID_MESSAGE =
  "This tunnel does not accept the JWT: it is not valid here, or has expired.";

/** Changes to the headers of an admitted request, by their plain names. */
export interface HeadRewrite {
  remove: Set<string>;
  /** Replaces what the visitor sent under these names. `name` is in lower case. */
  set: Map<string, { name: string; value: string }>;
}

/** All effects of a policy, whatever the order of its actions. */
export interface PolicyEffects {
  deny: string[];
  jwt: JwtValidation | null;
  rateLimit: RateLimit | null;
  rewrite: HeadRewrite;
}

export function compilePolicy(policy: TrafficPolicy | null): PolicyEffects {
  const rewrite: HeadRewrite = { remove: new Set(), set: new Map() };
  const effects: PolicyEffects = { deny: [], jwt: null, rateLimit: null, rewrite };
  for (const action of policy?.actions ?? []) addEffect(effects, action);
  return effects;
}

function addEffect(effects: PolicyEffects, action: PolicyAction): void {
  switch (action.kind) {
    case "header_set": {
      const name = action.name.toLowerCase();
      // The later one of two values for a name applies.
      effects.rewrite.set.set(toPlainName(name), { name, value: action.value });
      return;
    }
    case "deny":
      effects.deny.push(action.path_prefix);
      return;
    case "jwt_validation":
      effects.jwt ??= action;
      return;
    case "rate_limit":
      effects.rateLimit ??= action;
      return;
    default:
      action satisfies never;
  }
}

/** The effects that need no state of the tunnel, so that the edge can authorize by them. */
export async function authorizeByPolicy(
  { deny, jwt, realm }: Pick<PolicyEffects, "deny" | "jwt"> & { realm: string },
  request: AccessRequest,
  authenticators: Pick<Authenticators, "token">,
): Promise<Refusal | null> {
  const refusal = deny.length > 0 ? checkPaths(deny, request) : null;
  if (refusal !== null || jwt === null) return refusal;
  const verdict = await authenticators.token(jwt, realm, request);
  return verdict === "valid" ? null : { ...toTokenRefusal(verdict), by: "jwt_validation" };
}

function checkPaths(
  deny: string[],
  { path, getHeaderPaths }: Pick<AccessRequest, "path" | "getHeaderPaths">,
): Refusal | null {
  for (const read of [path, ...getHeaderPaths()]) {
    const refusal = toPathRefusal(checkPath(deny, read));
    if (refusal !== null) return refusal;
  }
  return null;
}

function toPathRefusal(verdict: PathVerdict): Refusal | null {
  if (verdict === "allowed") return null;
  return verdict === "denied"
    ? { code: "forbidden", by: "deny" }
    : { code: "forbidden", by: "deny", message: LONG_PATH_MESSAGE };
}

function toTokenRefusal(verdict: Exclude<TokenVerdict, "valid">): Refusal {
  if (typeof verdict === "object") return withRetryAfter("unavailable", verdict.issuerDownForMs);
  // A request without a token gets a challenge without an error (RFC 6750 §3.1).
  const [challenge, message] =
    verdict === "missing"
      ? ["Bearer", TOKEN_MISSING_MESSAGE]
      : ['Bearer error="invalid_token"', TOKEN_INVALID_MESSAGE];
  return { code: "unauthorized", headers: { "www-authenticate": challenge }, message };
}
