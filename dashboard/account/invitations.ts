/** Open invitations: people who were invited to the organization and have not accepted yet. */
import type { Me } from "../../protocol/schemas/accounts/accounts.ts";
import type { Invitation } from "../../protocol/schemas/organizations/organizations.ts";
import { h, createTime } from "../ui/element.ts";
import { createSelectField, createTextField } from "../ui/form.ts";
import {
  createBadge,
  createDetail,
  createRows,
  createSection,
  type Row,
  type Section,
} from "../ui/section.ts";
import { call } from "../session.ts";
import { getGrantableRoles } from "./members.ts";

export function createInvitationsSection({ active_org: org }: Me): Section {
  const path = `/orgs/${org.id}/invitations`;
  const roles = getGrantableRoles(org.role);

  return createSection("Invitations", async (self) => {
    const invitations = await call<Invitation[]>("GET", path);
    const invite = self.createDialogButton("Invite a person", {
      title: `Invite a person to ${org.name}`,
      about: [],
      fields: [
        createTextField("email", "Email address", { type: "email", autocomplete: "off" }),
        createSelectField("role", "Role", roles, "member"),
      ],
      submit: "Send the invitation",
      async act(value) {
        await call("POST", path, { email: value("email"), role: value("role") });
      },
    });
    return [
      invitations.length > 0
        ? createRows(invitations.map((invitation) => buildRow(invitation, self)))
        : h("p", {}, "There are no open invitations."),
      ...(roles.length > 0 ? [h("div", { class: "actions" }, invite)] : []),
    ];
  });

  function buildRow({ id, email, role, expires_at: end }: Invitation, self: Section): Row {
    const about = [
      h("strong", {}, email),
      createBadge(role),
      createDetail("valid until ", createTime(end)),
    ];
    if (roles.length === 0) return { about };
    const revoke = self.createDialogButton(
      "Revoke",
      {
        title: "Revoke the invitation?",
        about: [h("p", {}, "The link that ", h("strong", {}, email), " received stops working.")],
        submit: "Revoke",
        kind: "danger",
        act: async () => void (await call("DELETE", `${path}/${id}`)),
      },
      { "aria-label": `Revoke the invitation of ${email}` },
    );
    return { about, actions: [revoke] };
  }
}
