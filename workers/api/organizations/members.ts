/** /orgs/{id}/members: the members of an organization. Every member may leave, except the last owner. */
import { z } from "zod";
import {
  ChangeRole,
  Member,
  MemberId,
} from "../../../protocol/schemas/organizations/organizations.ts";
import { IdParams, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { getRoleRevocations, hasPermission } from "../../identity/permissions.ts";
import {
  changeRole,
  listMembers,
  removeMember,
  type MemberRefusal,
  type MemberRow,
} from "../../store/organizations/members.ts";
import {
  allowInPathOrganization,
  allowReadInPathOrganization,
  missingPermission,
  readAsCaller,
} from "../guard.ts";
import {
  createRouter,
  getMemberActor,
  jsonResponse,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";

export const members = createRouter();

members.openapi(
  route({
    operationId: "listMembers",
    method: "get",
    path: "/orgs/{id}/members",
    summary: "List the members of an organization",
    guard: allowReadInPathOrganization("orgs:read"),
    params: IdParams,
    query: PageQuery,
    responses: {
      200: jsonResponse("The members, by the time they joined, newest first.", z.array(Member)),
    },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listMembers(db, orgId, page));
    return c.json(rows.map(toMember), 200);
  },
);

members.openapi(
  route({
    operationId: "changeMemberRole",
    method: "patch",
    path: "/orgs/{id}/members/{user_id}",
    summary: "Change the role of a member",
    guard: allowInPathOrganization("members:write"),
    params: MemberId,
    body: ChangeRole,
    responses: { 200: jsonResponse("Changed, from the member's next request on.", Member) },
    failures: ["conflict"],
  }),
  async (c) => {
    const { user_id: userId } = c.req.valid("param");
    const { role } = c.req.valid("json");
    const member = await changeRole(c.var.db, getMemberActor(c), {
      userId,
      role,
      canChangeOwners: canChangeOwners(c),
      revocations: getRoleRevocations(role),
    });
    if (typeof member === "string") throw toApiError(c, member);
    return c.json(toMember(member), 200);
  },
);

members.openapi(
  route({
    operationId: "removeMember",
    method: "delete",
    path: "/orgs/{id}/members/{user_id}",
    summary: "Remove a member, or leave the organization",
    guard: allowInPathOrganization("account:self"),
    params: MemberId,
    responses: {
      200: jsonResponse(
        "Removed. The sessions and tokens of the member no longer act for the organization.",
        Ok,
      ),
    },
    failures: ["forbidden", "conflict"],
  }),
  async (c) => {
    const { user_id: userId } = c.req.valid("param");
    const { role, userId: ownId } = c.var.principal;
    const isOwn = userId === ownId;
    if (!isOwn && !hasPermission(role, "members:write")) {
      throw missingPermission(role, "members:write");
    }
    const outcome = await removeMember(c.var.db, getMemberActor(c), {
      userId,
      canChangeOwners: canChangeOwners(c),
      revocations: getRoleRevocations(null),
    });
    if (outcome !== "removed") throw toApiError(c, outcome);
    return c.json({ ok: true as const }, 200);
  },
);

function canChangeOwners(c: ApiContext): boolean {
  return hasPermission(c.var.principal.role, "owners:write");
}

function toApiError(c: ApiContext, refusal: MemberRefusal): ApiError {
  switch (refusal) {
    case "not_found":
      return notFound("member", "user id");
    case "owners_only":
      return missingPermission(c.var.principal.role, "owners:write");
    case "last_owner":
      return new ApiError(
        "conflict",
        "This is the last owner of the organization. Make another member an owner first.",
      );
  }
}

function toMember({ userId, email, role, joinedAt }: MemberRow): Member {
  return { user_id: userId, email, role, joined_at: joinedAt.toISOString() };
}
