/** Which issuers a traffic policy may name depends on the server, so its schema does not check them. */
import type { TrafficPolicy } from "../../../protocol/schemas/access/policies.ts";
import type { Config } from "../../config/config.ts";

/** @returns the first issuer that this server does not accept; null when there is none. */
export function findIssuerIssue(
  { actions }: TrafficPolicy,
  { publicOrigin, ALLOW_PRIVATE_FETCH: allowsHttp }: Config,
): { path: (string | number)[]; message: string } | null {
  for (const [index, action] of actions.entries()) {
    if (action.kind !== "jwt_validation") continue;
    for (const [at, issuer] of (action.allowed_issuers ?? []).entries()) {
      const path = ["actions", index, "allowed_issuers", at];
      if (issuer.replace(/\/$/, "") === publicOrigin)
        return { path, message: "must not be this service: leave out the field" };
      if (!allowsHttp && !issuer.startsWith("https://"))
        return { path, message: "must be a URL that starts with https://" };
    }
  }
  return null;
}
