/** GET /activate: a person approves the sign-in of a machine's command line. */
import type { PendingDevice } from "../protocol/schemas/accounts/devices.ts";
import { h } from "./ui/element.ts";
import { createForm, createTextField } from "./ui/form.ts";
import { openPage } from "./page.ts";
import { call } from "./session.ts";
import { showStep } from "./ui/view.ts";

const TITLE = "Connect a machine";
/** For the first step only: the user types further codes. */
const initialCode = new URLSearchParams(location.search).get("code") ?? "";

openPage({
  title: TITLE,
  intro: "Sign in, then compare the code with the one that your command line shows.",
  show: ({ active_org: { name } }) => askForCode(name),
});

function askForCode(organization: string): void {
  const attributes = {
    class: "code",
    autocomplete: "off",
    autocapitalize: "characters",
    spellcheck: "false",
    placeholder: "BCDF-GHJK",
    value: initialCode,
  };
  const step = createForm({
    fields: [createTextField("code", "Code from your command line", attributes)],
    submit: "Continue",
    async act(value) {
      const query = new URLSearchParams({ code: value("code") });
      askForApproval(organization, await call<PendingDevice>("GET", `/auth/cli/request?${query}`));
    },
  });
  showStep(TITLE, step);
  if (initialCode) step.requestSubmit();
}

function askForApproval(organization: string, { label, user_code: code }: PendingDevice): void {
  showStep(
    TITLE,
    h(
      "p",
      {},
      h("strong", { id: "machine" }, label),
      " requests access to open tunnels for ",
      h("strong", {}, organization),
      ". It shows this code:",
    ),
    h("p", { class: "shown code" }, code),
    h("p", {}, "Approve only if your own command line shows the same code right now."),
    createForm({
      submit: "Approve",
      async act() {
        await call("POST", "/auth/cli/authorize", { device_code: code });
        const nextStep = "Your command line continues by itself. You can close this page.";
        showStep(TITLE, h("p", { role: "status" }, `Done. ${nextStep}`));
      },
    }),
  );
}
