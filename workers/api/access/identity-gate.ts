/** /tunnels/{id}/edge-auth: the identity gate of a tunnel, at which visitors sign in. */
import {
  IdentityGateState,
  SetIdentityGate,
  TunnelIdentityGate,
  VISITOR_PROVIDER,
  type AllowList,
} from "../../../protocol/schemas/access/identity-gate.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import {
  isEmailAddress,
  normalizeEmail,
  normalizeEmailDomain,
} from "../../identity/accounts/emails.ts";
import { findVisitorProvider } from "../../identity/providers/providers.ts";
import { hasFeature } from "../../store/billing/plans.ts";
import { setIdentityGate } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import { createRouter, describeField, getMemberActor, jsonResponse, route } from "../route.ts";
import {
  requireGates,
  requireSettingChanged,
  requireHttpTunnel,
} from "../tunnels/setting-changes.ts";
import { providerNotConfigured } from "../accounts/provider-redirects.ts";

export const identityGate = createRouter();

identityGate.openapi(
  route({
    operationId: "getIdentityGate",
    method: "get",
    path: "/tunnels/{id}/edge-auth",
    summary: "Get the sign-in of a tunnel",
    guard: allow("tunnels:read"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "The provider and the lists, which are null when no sign-in is required.",
        TunnelIdentityGate,
      ),
    },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { identityGate: lists } = await requireGates(c, id);
    const gate: TunnelIdentityGate = {
      id,
      edge_auth_enabled: lists !== null,
      provider: lists && VISITOR_PROVIDER,
      allowed_domains: lists && lists.domains,
      allowed_emails: lists && lists.emails,
    };
    return c.json(gate, 200);
  },
);

identityGate.openapi(
  route({
    operationId: "setIdentityGate",
    method: "put",
    path: "/tunnels/{id}/edge-auth",
    summary: "Require visitors of a tunnel to sign in",
    description:
      "Replaces the current lists, from the next request on. A visitor must have an email address that is on one of the lists. When both lists are empty, every visitor who signs in is allowed.",
    guard: allow("tunnels:write"),
    params: IdParams,
    body: SetIdentityGate,
    responses: { 200: jsonResponse("The sign-in is required.", IdentityGateState) },
    failures: [
      "unsupported_provider",
      "upgrade_required",
      "provider_not_configured",
      "expired",
      "unavailable",
    ],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { provider, allowed_domains, allowed_emails } = c.req.valid("json");
    if (provider !== VISITOR_PROVIDER) {
      throw new ApiError(
        "unsupported_provider",
        `This provider is not supported. Use ${VISITOR_PROVIDER}.`,
      );
    }
    const allowList = normalize(allowed_domains, allowed_emails);
    await requireHttpTunnel(c, id);
    if (!hasFeature("edge_identity_gate", c.var.principal, new Date())) {
      throw new ApiError("upgrade_required", "Your plan does not include sign-in for visitors.");
    }
    if (!findVisitorProvider(c.env, c.var.config)) throw providerNotConfigured(VISITOR_PROVIDER);
    requireSettingChanged(await setIdentityGate(c.var.db, getMemberActor(c), id, allowList));
    return c.json({ id, edge_auth_enabled: true }, 200);
  },
);

identityGate.openapi(
  route({
    operationId: "removeIdentityGate",
    method: "delete",
    path: "/tunnels/{id}/edge-auth",
    summary: "Remove the sign-in of a tunnel",
    guard: allow("tunnels:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "Visitors no longer have to sign in. Other gates still apply.",
        IdentityGateState,
      ),
    },
    failures: ["invalid_request", "expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    requireSettingChanged(await setIdentityGate(c.var.db, getMemberActor(c), id, null));
    return c.json({ id, edge_auth_enabled: false }, 200);
  },
);

/** In the form in which they are compared with the addresses from providers. */
function normalize(typedDomains: string[], typedEmails: string[]): AllowList {
  const domains = typedDomains.map(normalizeEmailDomain);
  const emails = typedEmails.map(normalizeEmail);
  const fields = [
    ...domains.map((domain, at) => ({
      path: `allowed_domains[${at}]`,
      message: domain === null ? "must be a domain of email addresses, such as example.com" : null,
    })),
    ...emails.map((email, at) => ({
      path: `allowed_emails[${at}]`,
      message: isEmailAddress(email) ? null : "must be an email address",
    })),
  ].flatMap(({ path, message }) => (message === null ? [] : [{ path, message }]));
  const [first] = fields;
  if (first) {
    throw new ApiError("invalid_request", describeField(first), { fields });
  }
  return {
    domains: [...new Set(domains.filter((domain) => domain !== null))],
    emails: [...new Set(emails)],
  };
}
