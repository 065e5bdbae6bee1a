/**
 * /orgs: the organizations of the caller. Under /orgs/{id} the caller's role in the organization of the path counts,
 * whichever organization the access token acts for.
 */
import { z } from "zod";
import { AccountSummary } from "../../../protocol/schemas/accounts/accounts.ts";
import {
  CreateOrganization,
  Organization,
  OrganizationsQuery,
  RenameOrganization,
} from "../../../protocol/schemas/organizations/organizations.ts";
import { IdParams, Ok } from "../../../protocol/schemas/scalars.ts";
import { Budget, BudgetResult } from "../../../protocol/schemas/tokens.ts";
import { ApiError } from "../../errors.ts";
import { signAccessToken } from "../../identity/tokens/access-tokens.ts";
import { getAdditionalOrganizationTerms } from "../../identity/organization-terms.ts";
import {
  createOrganization,
  deleteOrganization,
  findOrganization,
  listOrganizations,
  renameOrganization,
  switchOrganization,
} from "../../store/organizations/organizations.ts";
import { listResourceOwners } from "../../store/organizations/resource-owners.ts";
import { setOrganizationBudget } from "../../store/tokens/spending.ts";
import { allow, allowInPathOrganization } from "../guard.ts";
import { createRouter, getMemberActor, jsonResponse, notFound, route } from "../route.ts";
import { toAccountSummary } from "../accounts/sign-in.ts";
import type { OrganizationWithRole } from "../../store/organizations/organization-with-role.ts";

export const organizations = createRouter();

organizations.openapi(
  route({
    operationId: "listOrganizations",
    method: "get",
    path: "/orgs",
    summary: "List the organizations of the caller",
    guard: allow("account:self"),
    query: OrganizationsQuery,
    responses: {
      200: jsonResponse(
        "The organizations, by the time the caller joined, newest first.",
        z.array(Organization),
      ),
    },
  }),
  async (c) => {
    const { db, principal } = c.var;
    const { resource_id: resourceId, ...page } = c.req.valid("query");
    const rows =
      resourceId === undefined
        ? await listOrganizations(db, principal.userId, page)
        : await listResourceOwners(db, principal.userId, resourceId);
    return c.json(rows.map(toOrganization), 200);
  },
);

organizations.openapi(
  route({
    operationId: "createOrganization",
    method: "post",
    path: "/orgs",
    summary: "Create an organization",
    guard: allow("account:self"),
    body: CreateOrganization,
    responses: { 201: jsonResponse("Created. The caller is its owner.", Organization) },
    failures: ["duplicate_name", "conflict"],
  }),
  async (c) => {
    const terms = getAdditionalOrganizationTerms(c.var.config);
    const request = { ...c.req.valid("json"), terms };
    const org = await createOrganization(c.var.db, getMemberActor(c), request);
    switch (org) {
      case "duplicate_name":
        throw new ApiError("duplicate_name", `The slug ${request.slug ?? ""} is taken.`);
      default:
        return c.json(toOrganization(org), 201);
    }
  },
);

organizations.openapi(
  route({
    operationId: "getOrganization",
    method: "get",
    path: "/orgs/{id}",
    summary: "Get an organization",
    guard: allowInPathOrganization("orgs:read"),
    params: IdParams,
    responses: {
      200: jsonResponse("The organization, with the caller's role in it.", Organization),
    },
  }),
  async (c) => {
    const { db, principal } = c.var;
    const org = await findOrganization(db, principal.orgId);
    if (!org) throw notFound("organization");
    return c.json(toOrganization({ ...org, role: principal.role }), 200);
  },
);

organizations.openapi(
  route({
    operationId: "renameOrganization",
    method: "patch",
    path: "/orgs/{id}",
    summary: "Rename an organization",
    guard: allowInPathOrganization("orgs:write"),
    params: IdParams,
    body: RenameOrganization,
    responses: { 200: jsonResponse("Renamed. The slug does not change.", Organization) },
  }),
  async (c) => {
    const { name } = c.req.valid("json");
    const org = await renameOrganization(c.var.db, getMemberActor(c), name);
    return c.json(toOrganization(org), 200);
  },
);

organizations.openapi(
  route({
    operationId: "deleteOrganization",
    method: "delete",
    path: "/orgs/{id}",
    summary: "Delete an organization",
    guard: allowInPathOrganization("orgs:delete"),
    params: IdParams,
    responses: {
      200: jsonResponse("Deleted, with its tunnels, tokens, invitations and memberships.", Ok),
    },
    failures: ["rate_limited"],
  }),
  async (c) => {
    await deleteOrganization(c.var.db, getMemberActor(c));
    return c.json({ ok: true as const }, 200);
  },
);

organizations.openapi(
  route({
    operationId: "setOrganizationBudget",
    method: "put",
    path: "/orgs/{id}/budget",
    summary: "Set the monthly budget of an organization",
    description:
      "For the traffic of all of its tokens together, including those that are minted later.",
    guard: allowInPathOrganization("budgets:write"),
    params: IdParams,
    body: Budget,
    responses: {
      200: jsonResponse(
        "The budget is in force. All agents are disconnected when the organization exceeds it.",
        BudgetResult,
      ),
    },
    badRequestCode: "invalid_budget",
  }),
  async (c) => {
    const { monthlyBudgetUsdCents } = c.req.valid("json");
    await setOrganizationBudget(c.var.db, getMemberActor(c), monthlyBudgetUsdCents);
    return c.json({ success: true as const, monthlyBudgetUsdCents }, 200);
  },
);

organizations.openapi(
  route({
    operationId: "switchOrganization",
    method: "post",
    path: "/orgs/{id}/switch",
    summary: "Switch to another organization",
    guard: allowInPathOrganization("account:self"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "An access token for this organization. Renewed tokens are for it too.",
        AccountSummary,
      ),
    },
    failures: ["forbidden"],
  }),
  async (c) => {
    const { config, db, principal } = c.var;
    await switchOrganization(db, getMemberActor(c), principal.sessionId);
    const { userId: sub, sessionId: sid, orgId: org, role } = principal;
    const accessToken = await signAccessToken(config, { sub, sid, org, role });
    return c.json(toAccountSummary(principal, accessToken), 200);
  },
);

export function toOrganization(org: OrganizationWithRole): Organization {
  const { id, name, slug, role, plan, approvalStatus, monthlyBudgetUsdCents, createdAt } = org;
  return {
    id,
    name,
    slug,
    role,
    plan,
    approval_status: approvalStatus,
    monthly_budget_usd_cents: monthlyBudgetUsdCents,
    created_at: createdAt.toISOString(),
  };
}
