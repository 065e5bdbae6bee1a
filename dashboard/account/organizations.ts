/** The organizations that somebody belongs to, and the one that they act for. */
import { ORGANIZATION_NAME_MAX_CHARS } from "../../protocol/limits.ts";
import type { AccountSummary, Me } from "../../protocol/schemas/accounts/accounts.ts";
import type { Organization } from "../../protocol/schemas/organizations/organizations.ts";
import { h } from "../ui/element.ts";
import { textField } from "../ui/form.ts";
import { badge, detail, rows, section, type Row, type Section } from "../ui/section.ts";
import { beginSession, call } from "../session.ts";

export function organizationsSection(me: Me, showAgain: () => Promise<void>): Section {
  return section("Organizations", async (self) => {
    const organizations = await call<Organization[]>("GET", "/orgs");
    const create = self.asking("New organization", {
      title: "New organization",
      about: [],
      fields: [textField("name", "Name", { maxlength: String(ORGANIZATION_NAME_MAX_CHARS) })],
      submit: "Create",
      act: async (value) => void (await call("POST", "/orgs", { name: value("name") })),
    });
    return [
      rows(organizations.map((organization) => rowOf(organization, self))),
      h("div", { class: "actions" }, create),
    ];
  });

  function rowOf({ id, name, role, plan, approval_status: status }: Organization, self: Section) {
    const isActive = id === me.active_org.id;
    const row: Row = {
      about: [
        h("strong", {}, name),
        ...(isActive ? [badge("active")] : []),
        detail(`${plan} plan · you are ${role}`),
        ...(status === "approved" ? [] : [detail(APPROVAL[status])]),
      ],
    };
    if (!isActive) row.actions = [switchTo(id, name, self)];
    return row;
  }

  function switchTo(id: string, name: string, self: Section): HTMLElement {
    const pressed = self.button("Switch", async () => {
      const { access_token } = await call<AccountSummary>("POST", `/orgs/${id}/switch`);
      beginSession(access_token);
      await showAgain();
    });
    pressed.setAttribute("aria-label", `Switch to ${name}`);
    return pressed;
  }
}

const APPROVAL = {
  pending: "Waiting for approval. Until then, its tunnels stay closed.",
  rejected: "Not approved. Its tunnels stay closed.",
};
