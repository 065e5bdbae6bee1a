/** The members of the organization. */
import { ROLES, type Role } from "../../protocol/roles.ts";
import type { Me } from "../../protocol/schemas/accounts/accounts.ts";
import type { Member } from "../../protocol/schemas/organizations/organizations.ts";
import { h, createTime, type Child } from "../ui/element.ts";
import { createSelectField } from "../ui/form.ts";
import {
  createBadge,
  createDetail,
  createRows,
  createSection,
  type Section,
} from "../ui/section.ts";
import { call } from "../session.ts";

/** The roles that a member may grant. The API enforces this; the page only hides choices that it would refuse. */
export function getGrantableRoles(role: Role): readonly Role[] {
  if (role === "owner") return ROLES;
  return role === "admin" ? ROLES.filter((other) => other !== "owner") : [];
}

export function createMembersSection(
  { user, active_org: org }: Me,
  showAgain: () => Promise<void>,
) {
  const roles = getGrantableRoles(org.role);

  return createSection("Members", async (self) => {
    const members = await call<Member[]>("GET", `/orgs/${org.id}/members`);
    return [
      createRows(
        members.map((member) => ({
          about: [
            h("strong", {}, member.email),
            createBadge(member.role),
            ...(member.user_id === user.id ? [createBadge("you")] : []),
            createDetail("since ", createTime(member.joined_at)),
          ],
          actions:
            member.user_id === user.id ? [createLeaveButton(self)] : createActions(member, self),
        })),
      ),
    ];
  });

  function createActions({ user_id: id, email, role }: Member, self: Section): Child[] {
    if (!roles.includes(role)) return [];
    const path = `/orgs/${org.id}/members/${id}`;
    const change = self.createDialogButton(
      "Change role",
      {
        title: "Change the role",
        about: [h("p", {}, h("strong", {}, email), ` is ${role} in ${org.name}.`)],
        fields: [createSelectField("role", "New role", roles, role)],
        submit: "Change",
        act: async (value) => void (await call("PATCH", path, { role: value("role") })),
      },
      { "aria-label": `Change the role of ${email}` },
    );
    const remove = self.createDialogButton(
      "Remove",
      {
        title: "Remove from the organization?",
        about: [
          h("p", {}, h("strong", {}, email), ` loses access to ${org.name} at once.`),
          h("p", {}, "Tokens that this person minted are revoked, and their tunnels stop."),
        ],
        submit: "Remove",
        kind: "danger",
        act: async () => void (await call("DELETE", path)),
      },
      { "aria-label": `Remove ${email}` },
    );
    return [change, remove];
  }

  function createLeaveButton(self: Section): Child {
    return self.createDialogButton("Leave", {
      title: `Leave ${org.name}?`,
      about: [h("p", {}, "Tokens that you minted in it are revoked, and their tunnels stop.")],
      submit: "Leave",
      kind: "danger",
      async act() {
        await call("DELETE", `/orgs/${org.id}/members/${user.id}`);
        await showAgain();
      },
    });
  }
}
