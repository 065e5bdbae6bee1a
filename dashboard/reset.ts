/** GET /reset: sets a new password with the token from the email. */
import { takeUrlParameters } from "./url-parameters.ts";
import { h, type Child } from "./ui/element.ts";
import { createForm, createNewPasswordField, createSelectField } from "./ui/form.ts";
import { RequestError, send, getErrorMessage } from "./request.ts";
import { showStep } from "./ui/view.ts";

const REVOKE = "Revoke them: another person may have had access";
const KEEP = "Keep them: all of them are mine";

const { token } = takeUrlParameters();
if (token === null) {
  const about = "Open the link in the email again. It is valid for one hour and works once.";
  showStep("This link is incomplete", h("p", {}, about), createSignInLink("Go to sign-in"));
} else {
  askForPassword(token);
}

function askForPassword(token: string): void {
  showStep(
    "Set a new password",
    createForm({
      fields: [
        createNewPasswordField("new_password", "New password"),
        createSelectField("tokens", "Tokens that your sessions minted", [REVOKE, KEEP], REVOKE),
      ],
      submit: "Set the password",
      act: (value) => reset(token, value("new_password"), value("tokens") === KEEP),
    }),
  );
}

async function reset(token: string, password: string, keepTokens: boolean): Promise<void> {
  try {
    const body = { token, new_password: password, keep_tokens: keepTokens };
    await send("POST", "/auth/reset", body);
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== "invalid_token") throw error;
    const about = h("p", { role: "alert" }, getErrorMessage(error));
    return showStep("This link is no longer valid", about, createSignInLink("Request a new link"));
  }
  const text = "Your new password is set. All sessions were signed out.";
  showStep("Done", h("p", { role: "status" }, text), createSignInLink("Sign in"));
}

function createSignInLink(label: string): Child {
  return h("div", { class: "actions" }, h("a", { class: "button primary", href: "/" }, label));
}
