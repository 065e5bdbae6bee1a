/** GET /invitation: whoever has the token from the mail joins the organization. */
import type { AccountSummary, Me } from "../protocol/schemas/accounts/accounts.ts";
import type { Organization } from "../protocol/schemas/organizations/organizations.ts";
import { takeArrival } from "./arrival.ts";
import { h } from "./ui/element.ts";
import { form, textField } from "./ui/form.ts";
import { keep, kept } from "./kept.ts";
import { openPage } from "./page.ts";
import { beginSession, call, signOut } from "./session.ts";
import { showStep } from "./ui/view.ts";

const TITLE = "Join an organization";
/** Kept for this tab: signing in can lead over a provider's pages and back. */
const KEPT = "underpass-invitation";

const arrival = takeArrival();
if (arrival.token !== null) keep("sessionStorage", KEPT, arrival.token);

openPage(
  {
    title: TITLE,
    intro: "Sign in with the address that was invited, or create an account with it.",
    show: ask,
  },
  arrival,
);

function ask(me: Me): void {
  const token = kept("sessionStorage", KEPT);
  showStep(
    TITLE,
    h("p", {}, "You are signed in as ", h("strong", {}, me.user.email), "."),
    form({
      fields: token === null ? [textField("token", "Token from the mail")] : [],
      submit: "Accept the invitation",
      async act(value) {
        const body = { token: token ?? value("token").trim() };
        const joined = await call<Organization>("POST", "/invitations/accept", body);
        keep("sessionStorage", KEPT, null);
        welcome(joined);
      },
    }),
    form({ submit: "Use another account", kind: "plain", act: signOut }),
  );
}

function welcome({ id, name, role }: Organization): void {
  showStep(
    "Welcome",
    h("p", { role: "status" }, "You are in ", h("strong", {}, name), `, as ${role}.`),
    form({
      submit: "Go there",
      async act() {
        const path = `/orgs/${id}/switch`;
        beginSession((await call<AccountSummary>("POST", path)).access_token);
        location.assign("/");
      },
    }),
  );
}
