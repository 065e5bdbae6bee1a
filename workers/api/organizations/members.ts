/** /orgs/{id}/members: who belongs to an organization. Anybody may leave; the last owner can't. */
import { z } from "zod";
import {
  ChangeRole,
  Member,
  MemberId,
} from "../../../protocol/schemas/organizations/organizations.ts";
import { Id, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { forfeitWith, hasPermission } from "../../identity/permissions.ts";
import {
  changeRole,
  listMembers,
  removeMember,
  type MemberRefusal,
  type MemberRow,
} from "../../store/organizations/members.ts";
import { allowIn, missingPermission } from "../guard.ts";
import {
  getMemberActor,
  jsonResponse,
  createRouter,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";

export const members = createRouter();

members.openapi(
  route({
    method: "get",
    path: "/orgs/{id}/members",
    summary: "List members",
    guard: allowIn("orgs:read"),
    params: Id,
    query: PageQuery,
    responses: { 200: jsonResponse("The latest joined first.", z.array(Member)) },
  }),
  async (c) => {
    const rows = await listMembers(c.var.db, c.var.principal.orgId, c.req.valid("query"));
    return c.json(rows.map(toMember), 200);
  },
);

members.openapi(
  route({
    method: "patch",
    path: "/orgs/{id}/members/{user_id}",
    summary: "Change a member's role",
    guard: allowIn("members:write"),
    params: MemberId,
    body: ChangeRole,
    responses: { 200: jsonResponse("Good from the member's next request on.", Member) },
    failures: ["conflict"],
  }),
  async (c) => {
    const { user_id: userId } = c.req.valid("param");
    const { role } = c.req.valid("json");
    const member = await changeRole(c.var.db, getMemberActor(c), {
      userId,
      role,
      mayChangeOwners: mayChangeOwners(c),
      forfeit: forfeitWith(role),
    });
    if (typeof member === "string") throw toApiError(c, member);
    return c.json(toMember(member), 200);
  },
);

members.openapi(
  route({
    method: "delete",
    path: "/orgs/{id}/members/{user_id}",
    summary: "Remove a member, or leave",
    guard: allowIn("account:self"),
    params: MemberId,
    responses: {
      200: jsonResponse("No session or token of theirs acts for the organization any more.", Ok),
    },
    failures: ["forbidden", "conflict"],
  }),
  async (c) => {
    const { user_id: userId } = c.req.valid("param");
    const { role, userId: ownId } = c.var.principal;
    const isOwn = userId.toLowerCase() === ownId;
    if (!isOwn && !hasPermission(role, "members:write")) {
      throw missingPermission(role, "members:write");
    }
    const outcome = await removeMember(c.var.db, getMemberActor(c), {
      userId,
      mayChangeOwners: mayChangeOwners(c),
      forfeit: forfeitWith(null),
    });
    if (outcome !== "removed") throw toApiError(c, outcome);
    return c.json({ ok: true as const }, 200);
  },
);

function mayChangeOwners(c: ApiContext): boolean {
  return hasPermission(c.var.principal.role, "owners:write");
}

function toApiError(c: ApiContext, refusal: MemberRefusal): ApiError {
  switch (refusal) {
    case "not_found":
      return notFound("such member");
    case "owners_only":
      return missingPermission(c.var.principal.role, "owners:write");
    case "last_owner":
      return new ApiError(
        "conflict",
        "An organization keeps an owner: make somebody else one first.",
      );
  }
}

function toMember({ userId, email, role, joinedAt }: MemberRow): Member {
  return { user_id: userId, email, role, joined_at: joinedAt.toISOString() };
}
