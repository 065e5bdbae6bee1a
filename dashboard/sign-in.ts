/** From a stranger to somebody who is signed in: the same steps on every page that wants to know who it is. */
import type { AccountSummary, MfaRequired } from "../protocol/schemas/accounts/accounts.ts";
import type { ProviderName, Providers } from "../protocol/schemas/accounts/providers.ts";
import { button, h, whileBusy, type Child } from "./ui/element.ts";
import {
  codeField,
  digits,
  emailField,
  form,
  newPasswordField,
  passwordField,
  recoveryCodeField,
} from "./ui/form.ts";
import { send, wordsOf } from "./request.ts";
import { beginSession } from "./session.ts";
import { showStep } from "./ui/view.ts";

export interface SignInOptions {
  title: string;
  /** Why the page asks. */
  intro?: string;
  /** What happened just before. */
  notice: string;
  /** From a provider that leads on to the second factor. */
  challenge: string | null;
}

/** @returns once a session has begun. */
export function signIn(options: SignInOptions): Promise<void> {
  return new Promise((resolve) => {
    const steps = stepsTo((accessToken) => {
      beginSession(accessToken);
      resolve();
    }, options);
    if (options.challenge) steps.secondFactor(options.challenge);
    else steps.password({ notice: options.notice });
  });
}

interface Start {
  email?: string;
  notice?: string;
}

function stepsTo(done: (accessToken: string) => void, { title, intro }: SignInOptions) {
  async function logIn(email: string, password: string): Promise<void> {
    const answer = await send<AccountSummary | MfaRequired>("POST", "/auth/login", {
      email,
      password,
    });
    if ("mfa_required" in answer) secondFactor(answer.challenge_token);
    else done(answer.access_token);
  }

  function password({ email = "", notice = "" }: Start = {}): void {
    const emailInput = emailField(email);
    const typed = () => emailInput.control.value;
    const links = [
      button("Create an account", () => signUp(typed())),
      button("Forgot your password?", () => forgot(typed())),
    ];
    showStep(
      title,
      ...(notice ? [h("p", { role: "status", class: "notice" }, notice)] : []),
      ...(intro ? [h("p", {}, intro)] : []),
      form({
        fields: [emailInput, passwordField("Password")],
        submit: "Sign in",
        act: (value) => logIn(value("email"), value("password")),
      }),
      providerLinks(),
      h("div", { class: "links" }, ...links),
    );
  }

  function secondFactor(challenge: string): void {
    const pass = async (proof: object) => {
      const body = { challenge_token: challenge, ...proof };
      done((await send<AccountSummary>("POST", "/auth/login/mfa", body)).access_token);
    };
    const again = button("Start again", () => password());
    const byCode = () =>
      showStep(
        "Second factor",
        form({
          fields: [codeField("Code from your authenticator")],
          submit: "Continue",
          act: (value) => pass({ code: digits(value("code")) }),
        }),
        h("div", { class: "links" }, button("Use a recovery code", byRecoveryCode), again),
      );
    const byRecoveryCode = () =>
      showStep(
        "Recovery code",
        h("p", {}, "One of the codes that you were shown with your second factor. It works once."),
        form({
          fields: [recoveryCodeField()],
          submit: "Continue",
          act: (value) => pass({ recovery_code: value("recovery_code") }),
        }),
        h("div", { class: "links" }, button("Use your authenticator", byCode), again),
      );
    byCode();
  }

  function signUp(typed: string): void {
    showStep(
      "Create an account",
      form({
        fields: [emailField(typed), newPasswordField("password", "Password")],
        submit: "Create account",
        async act(value) {
          const account = { email: value("email"), password: value("password") };
          await send("POST", "/auth/signup", account);
          confirmEmail(account);
        },
      }),
      h(
        "div",
        { class: "links" },
        button("I have an account", () => password({ email: typed })),
      ),
    );
  }

  function confirmEmail({ email, password: chosen }: { email: string; password: string }): void {
    const status = h("p", { role: "status" });
    const another = button("Send another code", () => {
      void whileBusy(another, async () => {
        status.textContent = await send("POST", "/auth/resend-verify-otp", { email }).then(
          () => "Sent. Earlier codes no longer work.",
          wordsOf,
        );
      });
    });
    const back = button("Back", () => signUp(email));
    showStep(
      "Check your mail",
      h("p", {}, "We sent a mail to ", h("strong", {}, email), ". It has a code of 6 digits."),
      form({
        fields: [codeField("Code")],
        submit: "Confirm",
        async act(value) {
          await send("POST", "/auth/verify-email-otp", { email, code: digits(value("code")) });
          await logIn(email, chosen);
        },
      }),
      status,
      h("div", { class: "links" }, another, back),
    );
  }

  function forgot(typed: string): void {
    showStep(
      "Forgot your password?",
      h("p", {}, "We mail you a link to set a new one."),
      form({
        fields: [emailField(typed)],
        submit: "Send the link",
        async act(value) {
          const email = value("email");
          await send("POST", "/auth/forgot", { email });
          showStep(
            "Check your mail",
            h("p", {}, "If ", h("strong", {}, email), " has an account, a link is on its way."),
            h("p", {}, "It works for one hour, and once."),
            h(
              "div",
              { class: "links" },
              button("Back to sign in", () => password({ email })),
            ),
          );
        },
      }),
      h(
        "div",
        { class: "links" },
        button("Back", () => password({ email: typed })),
      ),
    );
  }

  return { password, secondFactor };
}

// ── Providers ──

const PROVIDER_NAMES: Record<ProviderName, string> = {
  idp_a: "single sign-on",
  idp_b: "another account",
};

let providers: Promise<Child[]> | undefined;

/** Stays empty until it is known which there are, and where there are none. */
function providerLinks(): HTMLElement {
  const place = h("div", { class: "providers" });
  providers ??= send<Providers>("GET", "/auth/providers").then(
    (answer) => answer.providers.map(providerLink),
    // The form is there all the same.
    () => [],
  );
  void providers.then((links) => place.append(...links));
  return place;
}

function providerLink(name: ProviderName): Child {
  const query = new URLSearchParams({ return_to: location.pathname + location.search });
  const href = `/auth/oauth/${name}/start?${query}`;
  return h("a", { class: "button", href }, `Continue with ${PROVIDER_NAMES[name]}`);
}
