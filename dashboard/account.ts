/** GET /: the signed-in user's account, and their active organization. */
import type { Me } from "../protocol/schemas/accounts/accounts.ts";
import { createBillingSection } from "./account/billing.ts";
import { createEventsSection } from "./account/events.ts";
import { createInvitationsSection } from "./account/invitations.ts";
import { createMembersSection } from "./account/members.ts";
import { createOrganizationsSection } from "./account/organizations.ts";
import { createSecondFactorSection } from "./account/second-factor.ts";
import { createSessionsSection } from "./account/sessions.ts";
import { h } from "./ui/element.ts";
import { createForm } from "./ui/form.ts";
import { openPage, showPage, type Page } from "./page.ts";
import { signOut } from "./session.ts";
import { createBrand, main } from "./ui/view.ts";

const page: Page = { title: "Sign in", show };
openPage(page);

const reloadPage = () => showPage(page);

function show(me: Me): void {
  document.title = "Your account · Underpass";
  const heading = h("h1", { tabindex: "-1" }, "Your account");
  const sessions = createSessionsSection();
  const sections = [
    createOrganizationsSection(me, reloadPage),
    ...(me.active_org.role === "owner" ? [createBillingSection(reloadPage)] : []),
    createMembersSection(me, reloadPage),
    createInvitationsSection(me),
    createSecondFactorSection(() => sessions.reload()),
    sessions,
    createEventsSection("Your recent events", "/me/events"),
    createEventsSection(`Recent events in ${me.active_org.name}`, "/events"),
  ];
  const signOutForm = createForm({ submit: "Sign out", kind: "plain", act: signOut });
  main.replaceChildren(
    h("div", { class: "top" }, createBrand(), signOutForm),
    heading,
    h("p", {}, "Signed in as ", h("strong", {}, me.user.email), "."),
    ...sections.map(({ element }) => element),
  );
  heading.focus();
}
