/** GET /two-factor: removes the second factor with the token from the email, or cancels that. */
import { takeUrlParameters } from "./url-parameters.ts";
import { h, type Child } from "./ui/element.ts";
import { createForm } from "./ui/form.ts";
import { RequestError, send, getErrorMessage } from "./request.ts";
import { showStep } from "./ui/view.ts";

const TITLE = "Remove two-factor authentication";

const { token } = takeUrlParameters();
if (token === null) {
  showStep(
    "This link is incomplete",
    h("p", {}, "Open the link in the email again."),
    createLink(),
  );
} else {
  askWhatToDo(token);
}

function askWhatToDo(token: string): void {
  const act = (path: string, done: string) => async () => {
    try {
      await send("POST", path, { token });
    } catch (error) {
      if (!(error instanceof RequestError) || error.code !== "invalid_token") throw error;
      const about = h("p", { role: "alert" }, getErrorMessage(error));
      return showStep("This link is no longer valid", about, createLink());
    }
    showStep("Done", h("p", { role: "status" }, done), createLink());
  };
  showStep(
    TITLE,
    h(
      "p",
      {},
      "Removing it is possible 24 hours after the request. All sessions will be signed out.",
    ),
    createForm({
      submit: "Remove two-factor authentication",
      kind: "danger",
      act: act("/auth/mfa/removal/complete", "Two-factor authentication is off."),
    }),
    h("p", {}, "If you did not ask for this, cancel the request, then set a new password."),
    createForm({
      submit: "Cancel the request",
      kind: "plain",
      act: act("/auth/mfa/removal/cancel", "The request is canceled."),
    }),
  );
}

function createLink(): Child {
  return h(
    "div",
    { class: "actions" },
    h("a", { class: "button primary", href: "/" }, "Go to sign-in"),
  );
}
