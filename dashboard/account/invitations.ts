/** Who was asked to join the organization and has not answered yet. */
import type { Me } from "../../protocol/schemas/accounts/accounts.ts";
import type { Invitation } from "../../protocol/schemas/organizations/organizations.ts";
import { h, time } from "../ui/element.ts";
import { selectField, textField } from "../ui/form.ts";
import { badge, detail, rows, section, type Row, type Section } from "../ui/section.ts";
import { call } from "../session.ts";
import { getGrantableRoles } from "./members.ts";

export function invitationsSection({ active_org: org }: Me): Section {
  const path = `/orgs/${org.id}/invitations`;
  const roles = getGrantableRoles(org.role);

  return section("Invitations", async (self) => {
    const open = await call<Invitation[]>("GET", path);
    const invite = self.asking("Invite somebody", {
      title: `Invite somebody to ${org.name}`,
      about: [],
      fields: [
        textField("email", "Email address", { type: "email", autocomplete: "off" }),
        selectField("role", "Role", roles, "member"),
      ],
      submit: "Send the invitation",
      async act(value) {
        await call("POST", path, { email: value("email"), role: value("role") });
      },
    });
    return [
      open.length > 0
        ? rows(open.map((one) => buildRow(one, self)))
        : h("p", {}, "There are no open invitations."),
      ...(roles.length > 0 ? [h("div", { class: "actions" }, invite)] : []),
    ];
  });

  function buildRow({ id, email, role, expires_at: end }: Invitation, self: Section): Row {
    const about = [h("strong", {}, email), badge(role), detail("valid until ", time(end))];
    if (roles.length === 0) return { about };
    const revoke = self.asking(
      "Revoke",
      {
        title: "Revoke the invitation?",
        about: [h("p", {}, "The link that ", h("strong", {}, email), " was sent stops working.")],
        submit: "Revoke",
        kind: "danger",
        act: async () => void (await call("DELETE", `${path}/${id}`)),
      },
      { "aria-label": `Revoke the invitation of ${email}` },
    );
    return { about, actions: [revoke] };
  }
}
