/**
 * Invitations of an email address to an organization. The token in the email is valid once, and only for the account
 * with that address. No response reveals whether the address has an account.
 */
import { z } from "zod";
import {
  AcceptInvitation,
  Invitation,
  InvitationId,
  InvitationOffer,
  Invite,
  LookUpInvitation,
  Organization,
} from "../../../protocol/schemas/organizations/organizations.ts";
import { IdParams, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { toOutboxMail } from "../../integrations/mail/mail.ts";
import { invitationMail } from "../../integrations/mail/mails.ts";
import { ApiError } from "../../errors.ts";
import { INVITATION_MAX_MS } from "../../limits.ts";
import { randomSecret } from "../../identity/accounts/codes.ts";
import { isEmailAddress, normalizeEmail } from "../../identity/accounts/emails.ts";
import { hasPermission, getPermissionToGrant } from "../../identity/permissions.ts";
import { sha256Hex } from "../../identity/encryption.ts";
import {
  acceptInvitation,
  createInvitation,
  findInvitationOffer,
  listInvitations,
  revokeInvitation,
  type InvitationRefusal,
  type InvitationRow,
} from "../../store/organizations/invitations.ts";
import {
  allow,
  allowInPathOrganization,
  allowReadInPathOrganization,
  missingPermission,
  readAsCaller,
} from "../guard.ts";
import {
  createRouter,
  getMemberActor,
  invalidField,
  jsonResponse,
  notFound,
  organizationNotApproved,
  route,
} from "../route.ts";
import { toOrganization } from "./organizations.ts";

/** The maximum counts invitations of 24 hours; the oldest of them may be counted for hours more. */
const INVITATIONS_RETRY_AFTER_SECONDS = 3600;

export const invitations = createRouter();

invitations.openapi(
  route({
    operationId: "listInvitations",
    method: "get",
    path: "/orgs/{id}/invitations",
    summary: "List invitations that can still be accepted",
    guard: allowReadInPathOrganization("orgs:read"),
    params: IdParams,
    query: PageQuery,
    responses: { 200: jsonResponse("The invitations, newest first.", z.array(Invitation)) },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listInvitations(db, orgId, page));
    return c.json(rows.map(toInvitation), 200);
  },
);

invitations.openapi(
  route({
    operationId: "createInvitation",
    method: "post",
    path: "/orgs/{id}/invitations",
    summary: "Invite an email address to an organization",
    description: "Replaces an earlier invitation of the same address.",
    guard: allowInPathOrganization("members:write"),
    params: IdParams,
    body: Invite,
    responses: {
      201: jsonResponse("Invited. Only the email contains the token.", Invitation),
    },
    failures: ["duplicate_name", "conflict"],
  }),
  async (c) => {
    const { config, db, principal } = c.var;
    const { role, ...given } = c.req.valid("json");
    const email = normalizeEmail(given.email);
    if (!isEmailAddress(email)) throw invalidField("email", "must be an email address");
    const needed = getPermissionToGrant(role);
    if (!hasPermission(principal.role, needed)) throw missingPermission(principal.role, needed);

    const token = randomSecret();
    const expiresAt = new Date(Date.now() + INVITATION_MAX_MS);
    const details = { inviter: principal.email, organization: principal.orgName, token, expiresAt };
    const row = await createInvitation(db, getMemberActor(c), {
      email,
      role,
      tokenHash: await sha256Hex(token),
      mail: await toOutboxMail(config, invitationMail(email, details, config)),
    });
    if (typeof row === "string") throw toApiError(row, email);
    return c.json(toInvitation(row), 201);
  },
);

invitations.openapi(
  route({
    operationId: "revokeInvitation",
    method: "delete",
    path: "/orgs/{id}/invitations/{invitation_id}",
    summary: "Revoke an invitation",
    guard: allowInPathOrganization("members:write"),
    params: InvitationId,
    responses: { 200: jsonResponse("Revoked. Its token is no longer valid.", Ok) },
  }),
  async (c) => {
    const { invitation_id: id } = c.req.valid("param");
    const outcome = await revokeInvitation(c.var.db, getMemberActor(c), id);
    switch (outcome) {
      case "revoked":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("invitation");
    }
  },
);

invitations.openapi(
  route({
    operationId: "lookUpInvitation",
    method: "post",
    path: "/invitations/lookup",
    summary: "Look up an invitation before accepting it",
    guard: allow("account:self"),
    body: LookUpInvitation,
    responses: { 200: jsonResponse("The invitation.", InvitationOffer) },
    failures: ["invalid_token", "forbidden"],
  }),
  async (c) => {
    const { db, principal } = c.var;
    const tokenHash = await sha256Hex(c.req.valid("json").token);
    const offer = await findInvitationOffer(db, { tokenHash, email: principal.email });
    if (typeof offer === "string") throw toTokenError(offer);
    const { organizationName, role, inviterEmail, expiresAt } = offer;
    return c.json(
      {
        organization_name: organizationName,
        role,
        inviter_email: inviterEmail,
        expires_at: expiresAt.toISOString(),
      },
      200,
    );
  },
);

invitations.openapi(
  route({
    operationId: "acceptInvitation",
    method: "post",
    path: "/invitations/accept",
    summary: "Accept an invitation",
    guard: allow("account:self"),
    body: AcceptInvitation,
    responses: {
      200: jsonResponse("The organization, with the caller's role in it.", Organization),
    },
    failures: ["invalid_token", "forbidden", "conflict"],
  }),
  async (c) => {
    const { db, address: ip, principal } = c.var;
    const { userId, email } = principal;
    const tokenHash = await sha256Hex(c.req.valid("json").token);
    const org = await acceptInvitation(db, { tokenHash, userId, email, ip });
    if (typeof org === "string") throw toTokenError(org);
    return c.json(toOrganization(org), 200);
  },
);

function toTokenError(refusal: "invalid" | "another_address"): ApiError {
  switch (refusal) {
    case "invalid":
      return new ApiError(
        "invalid_token",
        "The invitation is not valid, was used or revoked, or has expired. Ask for a new one.",
      );
    case "another_address":
      return new ApiError(
        "forbidden",
        "The invitation is for another email address. Log in to the account with that address.",
      );
  }
}

function toApiError(refusal: InvitationRefusal, email: string): ApiError {
  switch (refusal) {
    case "organization_pending":
    case "organization_rejected":
      return organizationNotApproved(refusal);
    case "already_member":
      return new ApiError("duplicate_name", `The user ${email} is already a member.`);
    case "too_many":
      return new ApiError("conflict", "Too many invitations are open. Revoke some of them first.");
    case "too_many_today":
      return new ApiError(
        "rate_limited",
        "Too many invitations were sent in the last 24 hours. Try again later.",
        { retryAfterSeconds: INVITATIONS_RETRY_AFTER_SECONDS },
      );
    case "mailbox_has_too_many":
      return new ApiError(
        "rate_limited",
        "Too many invitations were sent to this address in the last 24 hours. Try again later.",
        { retryAfterSeconds: INVITATIONS_RETRY_AFTER_SECONDS },
      );
  }
}

function toInvitation({
  id,
  email,
  role,
  invitedBy,
  createdAt,
  expiresAt,
}: InvitationRow): Invitation {
  return {
    id,
    email,
    role,
    invited_by: invitedBy,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt.toISOString(),
  };
}
