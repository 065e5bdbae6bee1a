/** GET /invitation: accepts an invitation with the token from the email. */
import type { AccountSummary, Me } from "../protocol/schemas/accounts/accounts.ts";
import type { Organization } from "../protocol/schemas/organizations/organizations.ts";
import { takeUrlParameters } from "./url-parameters.ts";
import { h } from "./ui/element.ts";
import { createForm, createTextField } from "./ui/form.ts";
import { writeStored, readStored } from "./browser-storage.ts";
import { openPage } from "./page.ts";
import { beginSession, call, signOut } from "./session.ts";
import { showStep } from "./ui/view.ts";

const TITLE = "Join an organization";
/** Stored for this tab: signing in can lead to a provider's pages and back. */
const STORAGE_KEY = "underpass-invitation";

const arrival = takeUrlParameters();
if (arrival.token !== null) writeStored("sessionStorage", STORAGE_KEY, arrival.token);

openPage(
  {
    title: TITLE,
    intro: "Sign in with the email address that was invited, or create an account with it.",
    show: askToAccept,
  },
  arrival,
);

function askToAccept(me: Me): void {
  const token = readStored("sessionStorage", STORAGE_KEY);
  showStep(
    TITLE,
    h("p", {}, "You are signed in as ", h("strong", {}, me.user.email), "."),
    createForm({
      fields: token === null ? [createTextField("token", "Token from the email")] : [],
      submit: "Accept the invitation",
      async act(value) {
        const body = { token: token ?? value("token").trim() };
        const joined = await call<Organization>("POST", "/invitations/accept", body);
        writeStored("sessionStorage", STORAGE_KEY, null);
        showWelcome(joined);
      },
    }),
    createForm({ submit: "Use a different account", kind: "plain", act: signOut }),
  );
}

function showWelcome({ id, name, role }: Organization): void {
  showStep(
    "Welcome",
    h(
      "p",
      { role: "status" },
      "You are now a member of ",
      h("strong", {}, name),
      ` with the role ${role}.`,
    ),
    createForm({
      submit: "Open the organization",
      async act() {
        const path = `/orgs/${id}/switch`;
        beginSession((await call<AccountSummary>("POST", path)).access_token);
        location.assign("/");
      },
    }),
  );
}
