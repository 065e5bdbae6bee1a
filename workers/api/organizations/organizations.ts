/**
 * /orgs: what a person belongs to. Under /orgs/{id} the organization of the path counts and the caller's
 * role there, whichever one the access token acts for.
 */
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { AccountSummary } from "../../../protocol/schemas/accounts/accounts.ts";
import {
  CreateOrganization,
  Organization,
  RenameOrganization,
} from "../../../protocol/schemas/organizations/organizations.ts";
import { Id, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { signAccessToken } from "../../identity/tokens/access-tokens.ts";
import { furtherOrganizationTerms } from "../../identity/new-organization.ts";
import {
  createOrganization,
  deleteOrganization,
  findOrganization,
  listOrganizations,
  renameOrganization,
  switchOrganization,
} from "../../store/organizations/organizations.ts";
import { allow, allowIn } from "../guard.ts";
import { actorOf, answer, failures, jsonBody, newArea, notFound, roleChanged } from "../route.ts";
import { accountSummary } from "../accounts/sign-in.ts";
import type { OwnOrganization } from "../../store/organizations/own-organization.ts";

export const orgs = newArea();

orgs.openapi(
  createRoute({
    method: "get",
    path: "/orgs",
    summary: "List the organizations that the caller belongs to",
    ...allow("account:self"),
    request: { query: PageQuery },
    responses: {
      200: answer("The latest joined first.", z.array(Organization)),
      ...failures("invalid_request", "unauthorized"),
    },
  }),
  async (c) => {
    const { db, principal } = c.var;
    const rows = await listOrganizations(db, principal.userId, c.req.valid("query"));
    return c.json(rows.map(toOrganization), 200);
  },
);

orgs.openapi(
  createRoute({
    method: "post",
    path: "/orgs",
    summary: "Make an organization",
    ...allow("account:self"),
    request: { body: jsonBody(CreateOrganization) },
    responses: {
      201: answer("Made; the caller owns it.", Organization),
      ...failures("invalid_request", "unauthorized", "duplicate_name", "conflict"),
    },
  }),
  async (c) => {
    const terms = furtherOrganizationTerms(c.var.config);
    const asked = { ...c.req.valid("json"), terms };
    const org = await createOrganization(c.var.db, actorOf(c), asked);
    switch (org) {
      case "duplicate_name":
        throw new ApiError("duplicate_name", `The slug ${asked.slug ?? ""} is taken.`);
      case "too_many":
        throw new ApiError("conflict", "You own as many organizations as one person can.");
      default:
        return c.json(toOrganization(org), 201);
    }
  },
);

orgs.openapi(
  createRoute({
    method: "get",
    path: "/orgs/{id}",
    summary: "An organization",
    ...allowIn("orgs:read"),
    request: { params: Id },
    responses: {
      200: answer("As the caller sees it.", Organization),
      ...failures("unauthorized", "not_found"),
    },
  }),
  async (c) => {
    const { db, principal } = c.var;
    const org = await findOrganization(db, principal.orgId);
    if (!org) throw notFound("such organization");
    return c.json(toOrganization({ ...org, role: principal.role }), 200);
  },
);

orgs.openapi(
  createRoute({
    method: "patch",
    path: "/orgs/{id}",
    summary: "Rename an organization",
    ...allowIn("orgs:write"),
    request: { params: Id, body: jsonBody(RenameOrganization) },
    responses: {
      200: answer("Renamed; its slug stays.", Organization),
      ...failures("invalid_request", "unauthorized", "forbidden", "not_found"),
    },
  }),
  async (c) => {
    const { name } = c.req.valid("json");
    const org = await renameOrganization(c.var.db, actorOf(c), name);
    if (org === "role_changed") throw roleChanged();
    return c.json(toOrganization(org), 200);
  },
);

orgs.openapi(
  createRoute({
    method: "delete",
    path: "/orgs/{id}",
    summary: "Delete an organization",
    ...allowIn("orgs:delete"),
    request: { params: Id },
    responses: {
      200: answer("Its tunnels, tokens, invitations and memberships have ended.", Ok),
      ...failures("unauthorized", "forbidden", "not_found"),
    },
  }),
  async (c) => {
    const outcome = await deleteOrganization(c.var.db, actorOf(c));
    if (outcome === "role_changed") throw roleChanged();
    return c.json({ ok: true as const }, 200);
  },
);

orgs.openapi(
  createRoute({
    method: "post",
    path: "/orgs/{id}/switch",
    summary: "Act for another organization",
    ...allowIn("account:self"),
    request: { params: Id },
    responses: {
      200: answer("With an access token for it; renewing stays there.", AccountSummary),
      ...failures("unauthorized", "forbidden", "not_found"),
    },
  }),
  async (c) => {
    const { config, db, principal } = c.var;
    const outcome = await switchOrganization(db, actorOf(c), principal.sessionId);
    if (outcome === "role_changed") throw roleChanged();
    const { userId: sub, sessionId: sid, orgId: org, role } = principal;
    const accessToken = await signAccessToken(config, { sub, sid, org, role });
    return c.json(accountSummary(principal, accessToken), 200);
  },
);

export function toOrganization(org: OwnOrganization): Organization {
  const { id, name, slug, role, plan, approvalStatus, createdAt } = org;
  return {
    id,
    name,
    slug,
    role,
    plan,
    approval_status: approvalStatus,
    created_at: createdAt.toISOString(),
  };
}
