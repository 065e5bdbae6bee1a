/** GET /reset: whoever has the token from the mail sets a new password. */
import { takeArrival } from "./arrival.ts";
import { h, type Child } from "./ui/element.ts";
import { form, newPasswordField } from "./ui/form.ts";
import { Problem, send, wordsOf } from "./request.ts";
import { showStep } from "./ui/view.ts";

const { token } = takeArrival();
if (token === null) {
  const about = "Open the link in the mail again. It works for one hour, and once.";
  showStep("This link is not whole", h("p", {}, about), toSignIn("To sign in"));
} else {
  askForPassword(token);
}

function askForPassword(token: string): void {
  showStep(
    "Set a new password",
    form({
      fields: [newPasswordField("new_password", "New password")],
      submit: "Set the password",
      act: (value) => reset(token, value("new_password")),
    }),
  );
}

async function reset(token: string, password: string): Promise<void> {
  try {
    await send("POST", "/auth/reset", { token, new_password: password });
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "invalid_token") throw error;
    const about = h("p", { role: "alert" }, wordsOf(error));
    return showStep("This link is no longer good", about, toSignIn("Ask for another"));
  }
  const words = "Your password is set, and everybody who was signed in with the old one is out.";
  showStep("Done", h("p", { role: "status" }, words), toSignIn("Sign in"));
}

function toSignIn(label: string): Child {
  return h("div", { class: "actions" }, h("a", { class: "button primary", href: "/" }, label));
}
