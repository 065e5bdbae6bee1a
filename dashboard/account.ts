/** GET /: the signed-in user's account, and their active organization. */
import type { Me } from "../protocol/schemas/accounts/accounts.ts";
import { billingSection } from "./account/billing.ts";
import { eventsSection } from "./account/events.ts";
import { invitationsSection } from "./account/invitations.ts";
import { membersSection } from "./account/members.ts";
import { organizationsSection } from "./account/organizations.ts";
import { secondFactorSection } from "./account/second-factor.ts";
import { sessionsSection } from "./account/sessions.ts";
import { h } from "./ui/element.ts";
import { form } from "./ui/form.ts";
import { openPage, showPage, type Page } from "./page.ts";
import { signOut } from "./session.ts";
import { brand, main } from "./ui/view.ts";

const page: Page = { title: "Sign in", show };
openPage(page);

const again = () => showPage(page);

function show(me: Me): void {
  document.title = "Your account · Underpass";
  const heading = h("h1", { tabindex: "-1" }, "Your account");
  const sessions = sessionsSection();
  const sections = [
    organizationsSection(me, again),
    ...(me.active_org.role === "owner" ? [billingSection(again)] : []),
    membersSection(me, again),
    invitationsSection(me),
    secondFactorSection(() => sessions.reload()),
    sessions,
    eventsSection("Your recent events", "/me/events"),
    eventsSection(`Recent events in ${me.active_org.name}`, "/events"),
  ];
  const out = form({ submit: "Sign out", kind: "plain", act: signOut });
  main.replaceChildren(
    h("div", { class: "top" }, brand(), out),
    heading,
    h("p", {}, "Signed in as ", h("strong", {}, me.user.email), "."),
    ...sections.map(({ element }) => element),
  );
  heading.focus();
}
