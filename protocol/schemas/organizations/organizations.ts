/** Organizations, their members and invitations. */
import { z } from "zod";
import { ORGANIZATION_NAME_MAX_CHARS } from "../../limits.ts";
import { PLANS } from "../../plans.ts";
import { ROLES } from "../../roles.ts";
import {
  Instant,
  Label,
  MailedToken,
  NameInMails,
  PageQuery,
  TypedEmail,
  Uuid,
} from "../scalars.ts";

/** Whether a superadmin has let the organization use the service. */
export const APPROVAL_STATUSES = ["approved", "pending", "rejected"] as const;

const OrganizationRole = z.enum(ROLES);

export const Organization = z.object({
  id: z.uuid(),
  name: z.string(),
  slug: z.string(),
  role: OrganizationRole.describe("The caller's role."),
  plan: z.enum(PLANS),
  approval_status: z.enum(APPROVAL_STATUSES),
  /** For the traffic of all tokens together. null: no limit. */
  monthly_budget_usd_cents: z.int().nullable(),
  created_at: Instant,
});
export type Organization = z.infer<typeof Organization>;

export const OrganizationsQuery = PageQuery.extend({
  resource_id: Uuid.optional().describe(
    "Only the organization that has the tunnel, captured request, private network or webhook receiver with this id.",
  ),
});

export const CreateOrganization = z.object({
  name: NameInMails(ORGANIZATION_NAME_MAX_CHARS),
  slug: Label.optional().describe("Default: derived from the name."),
});
export const RenameOrganization = z.object({ name: NameInMails(ORGANIZATION_NAME_MAX_CHARS) });

export const Member = z.object({
  user_id: z.uuid(),
  email: z.string(),
  role: OrganizationRole,
  joined_at: Instant,
});
export type Member = z.infer<typeof Member>;

export const MemberId = z.object({ id: Uuid, user_id: Uuid });
export const ChangeRole = z.object({ role: OrganizationRole });

/** Its token is sent by mail and returned nowhere else. */
export const Invitation = z.object({
  id: z.uuid(),
  email: z.string(),
  role: OrganizationRole,
  invited_by: z.uuid().nullable(),
  created_at: Instant,
  expires_at: Instant,
});
export type Invitation = z.infer<typeof Invitation>;

export const InvitationId = z.object({ id: Uuid, invitation_id: Uuid });
/** The address is checked after it has been normalized. */
export const Invite = z.object({ email: TypedEmail, role: OrganizationRole });
export const LookUpInvitation = z.object({ token: MailedToken });
export const AcceptInvitation = z.object({ token: MailedToken });

/** What the invited person sees before they accept. */
export const InvitationOffer = z.object({
  organization_name: z.string(),
  role: OrganizationRole.describe("The role that the invited person gets."),
  inviter_email: z.string().nullable(),
  expires_at: Instant,
});
export type InvitationOffer = z.infer<typeof InvitationOffer>;
