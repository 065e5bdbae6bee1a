/** Audit actions of organizations, their members, tokens and projects. */
import type { ActionDescription } from "./action-description.ts";

export const ORGANIZATION_ACTIONS = {
  organization_created: {
    resource: "organization",
    predicate: "created the organization",
    description: "The organization was created.",
  },
  organization_budget_set: {
    resource: "organization",
    predicate: "set the monthly budget of the organization",
    description: "The monthly budget of the organization was set or removed.",
  },
  organization_updated: {
    resource: "organization",
    predicate: "renamed the organization from {from} to {to}",
    description: "The organization was renamed; `metadata` has `from` and `to`.",
  },
  organization_deleted: {
    resource: "organization",
    predicate: "deleted the organization",
    description: "The organization was deleted.",
  },
  organization_switched: {
    resource: "organization",
    predicate: "switched to the organization",
    description: "A session of the user switched to this organization.",
  },
  plan_changed: {
    resource: "organization",
    predicate: "changed the plan from {from} to {to}",
    description: "The plan changed; `metadata` has `from`, `to` and `reason`.",
  },
  subscription_changed: {
    resource: "subscription",
    predicate: "changed the subscription: {plan}, {status}",
    description: "The payment provider reported a change of the subscription.",
  },
  invitation_created: {
    resource: "invitation",
    predicate: "invited {email} as {role}",
    description: "An invitation was sent; `metadata` has the address and the role.",
  },
  invitation_revoked: {
    resource: "invitation",
    predicate: "revoked an invitation",
    description: "The invitation was revoked.",
  },
  invitation_accepted: {
    resource: "invitation",
    predicate: "accepted an invitation as {role}",
    description: "The invited person became a member; `metadata.role` is their role.",
  },
  member_role_changed: {
    resource: "user",
    predicate: "changed the role of {it} from {from} to {to}",
    description:
      "The role of the member `metadata.email` changed, `metadata.from` one role `to` another.",
  },
  member_removed: {
    resource: "user",
    predicate: "removed the member {it}",
    description: "The member `metadata.email` was removed, or left.",
  },
  token_created: {
    resource: "token",
    predicate: "minted the token {it}",
    description: "A capability token was minted; `metadata` has its name and nonce.",
  },
  token_revoked: {
    resource: "token",
    predicate: "revoked the token {it}",
    description: "A capability token was revoked.",
  },
  token_budget_set: {
    resource: "token",
    predicate: "set the monthly budget of the token {it}",
    description: "The monthly budget of a capability token was set or removed.",
  },
  project_created: {
    resource: "project",
    predicate: "created the project {it}",
    description: "The project was created.",
  },
  project_renamed: {
    resource: "project",
    predicate: "renamed the project {slug} to {name}",
    description: "The project was renamed.",
  },
  project_deleted: {
    resource: "project",
    predicate: "deleted the project {it}",
    description: "The project was deleted with its tunnels and tokens.",
  },
} as const satisfies Record<string, ActionDescription>;
