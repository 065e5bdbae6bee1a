/** /tunnels/{id}/edge-auth: the sign-in that visitors of a tunnel need. */
import {
  EdgeAuthState,
  SetEdgeAuth,
  type AllowList,
} from "../../../protocol/schemas/access/edge-auth.ts";
import { Id } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import {
  isEmailAddress,
  normalizeEmail,
  normalizeEmailDomain,
} from "../../identity/accounts/emails.ts";
import { findVisitorProvider } from "../../identity/providers/providers.ts";
import { mayUse } from "../../store/billing/plans.ts";
import { setIdentityGate } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import { getMemberActor, jsonResponse, createRouter, route } from "../route.ts";
import { requireGateChange } from "./gate-changes.ts";
import { providerNotConfigured } from "../accounts/provider-trips.ts";

export const edgeAuth = createRouter();

/** The provider that visitors can be sent to. */
const PROVIDER = "idp_a";

edgeAuth.openapi(
  route({
    method: "put",
    path: "/tunnels/{id}/edge-auth",
    summary: "Let those visitors of a tunnel through who sign in and are on its lists",
    description:
      "It replaces the lists before. The next request is judged by it. With both lists empty everybody passes who signs in.",
    guard: allow("tunnels:write"),
    params: Id,
    body: SetEdgeAuth,
    responses: { 200: jsonResponse("In force.", EdgeAuthState) },
    failures: [
      "unsupported_provider",
      "upgrade_required",
      "provider_not_configured",
      "unavailable",
    ],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { provider, allowed_domains, allowed_emails } = c.req.valid("json");
    if (provider !== PROVIDER) {
      throw new ApiError("unsupported_provider", `Visitors can sign in with ${PROVIDER} alone.`);
    }
    const allowList = normalize(allowed_domains, allowed_emails);
    if (!mayUse("identityGate", c.var.principal, new Date())) {
      throw new ApiError("upgrade_required", "Your plan has no sign-in in front of tunnels.");
    }
    if (!findVisitorProvider(c.env, c.var.config)) throw providerNotConfigured(PROVIDER);
    requireGateChange(await setIdentityGate(c.var.db, getMemberActor(c), id, allowList));
    return c.json({ id, edge_auth_enabled: true }, 200);
  },
);

edgeAuth.openapi(
  route({
    method: "delete",
    path: "/tunnels/{id}/edge-auth",
    summary: "Remove the sign-in in front of a tunnel",
    guard: allow("tunnels:write"),
    params: Id,
    responses: { 200: jsonResponse("Everybody may visit, as far as this goes.", EdgeAuthState) },
    failures: ["invalid_request", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    requireGateChange(await setIdentityGate(c.var.db, getMemberActor(c), id, null));
    return c.json({ id, edge_auth_enabled: false }, 200);
  },
);

/** As providers' addresses are compared with them. */
function normalize(typedDomains: string[], typedEmails: string[]): AllowList {
  const domains = typedDomains.map(normalizeEmailDomain);
  const emails = typedEmails.map(normalizeEmail);
  const fields = [
    ...domains.map((domain, at) => ({
      path: `allowed_domains.${at}`,
      message: domain === null ? "is not a domain of e-mail addresses" : null,
    })),
    ...emails.map((email, at) => ({
      path: `allowed_emails.${at}`,
      message: isEmailAddress(email) ? null : "is not an e-mail address",
    })),
  ].flatMap(({ path, message }) => (message === null ? [] : [{ path, message }]));
  const [first] = fields;
  if (first) {
    throw new ApiError("invalid_request", `${first.path} ${first.message}.`, { fields });
  }
  return {
    domains: [...new Set(domains.filter((domain) => domain !== null))],
    emails: [...new Set(emails)],
  };
}
