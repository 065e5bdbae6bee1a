/** The organizations of the user, and the active one. */
import { ORGANIZATION_NAME_MAX_CHARS } from "../../protocol/limits.ts";
import type { AccountSummary, Me } from "../../protocol/schemas/accounts/accounts.ts";
import type { Organization } from "../../protocol/schemas/organizations/organizations.ts";
import { h } from "../ui/element.ts";
import { createTextField } from "../ui/form.ts";
import {
  createBadge,
  createDetail,
  createRows,
  createSection,
  type Row,
  type Section,
} from "../ui/section.ts";
import { beginSession, call } from "../session.ts";

export function createOrganizationsSection(me: Me, showAgain: () => Promise<void>): Section {
  return createSection("Organizations", async (self) => {
    const organizations = await call<Organization[]>("GET", "/orgs");
    const create = self.createDialogButton("New organization", {
      title: "New organization",
      about: [],
      fields: [createTextField("name", "Name", { maxlength: String(ORGANIZATION_NAME_MAX_CHARS) })],
      submit: "Create",
      act: async (value) => void (await call("POST", "/orgs", { name: value("name") })),
    });
    return [
      createRows(organizations.map((organization) => buildRow(organization, self))),
      h("div", { class: "actions" }, create),
    ];
  });

  function buildRow(
    { id, name, role, plan, approval_status: status }: Organization,
    self: Section,
  ) {
    const isActive = id === me.active_org.id;
    const row: Row = {
      about: [
        h("strong", {}, name),
        ...(isActive ? [createBadge("active")] : []),
        createDetail(`${plan} plan · you are ${role}`),
        ...(status === "approved" ? [] : [createDetail(APPROVAL[status])]),
      ],
    };
    if (!isActive) row.actions = [createSwitchButton(id, name, self)];
    return row;
  }

  function createSwitchButton(id: string, name: string, self: Section): HTMLElement {
    const pressed = self.createButton("Switch", async () => {
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
