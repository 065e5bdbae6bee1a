/** The steps of signing in, the same on every page that requires it. */
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
import { send, getErrorMessage } from "./request.ts";
import { beginSession } from "./session.ts";
import { showStep } from "./ui/view.ts";

export interface SignInOptions {
  title: string;
  /** Why the page requires a sign-in. */
  intro?: string;
  /** A message about the previous action. */
  notice: string;
  /** The challenge of a sign-in through a provider that requires a second factor. */
  challenge: string | null;
}

/** Resolves when a session has started. */
export function signIn(options: SignInOptions): Promise<void> {
  return new Promise((resolve) => {
    const steps = createSteps((accessToken) => {
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

function createSteps(done: (accessToken: string) => void, { title, intro }: SignInOptions) {
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
        "Two-factor authentication",
        form({
          fields: [codeField("Code from your authenticator app")],
          submit: "Continue",
          act: (value) => pass({ code: digits(value("code")) }),
        }),
        h("div", { class: "links" }, button("Use a recovery code", byRecoveryCode), again),
      );
    const byRecoveryCode = () =>
      showStep(
        "Recovery code",
        h(
          "p",
          {},
          "Enter one of the recovery codes that you stored when you set up two-factor authentication. Each works once.",
        ),
        form({
          fields: [recoveryCodeField()],
          submit: "Continue",
          act: (value) => pass({ recovery_code: value("recovery_code") }),
        }),
        h("div", { class: "links" }, button("Use your authenticator app", byCode), again),
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
        button("I already have an account", () => password({ email: typed })),
      ),
    );
  }

  function confirmEmail({ email, password: chosen }: { email: string; password: string }): void {
    const status = h("p", { role: "status" });
    const another = button("Send another code", () => {
      void whileBusy(another, async () => {
        status.textContent = await send("POST", "/auth/resend-verify-otp", { email }).then(
          () => "Sent. Earlier codes are no longer valid.",
          getErrorMessage,
        );
      });
    });
    const back = button("Back", () => signUp(email));
    showStep(
      "Check your email",
      h("p", {}, "We sent an email to ", h("strong", {}, email), ". It contains a 6-digit code."),
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
      h("p", {}, "We will email you a link to set a new one."),
      form({
        fields: [emailField(typed)],
        submit: "Send the link",
        async act(value) {
          const email = value("email");
          await send("POST", "/auth/forgot", { email });
          showStep(
            "Check your email",
            h("p", {}, "If ", h("strong", {}, email), " has an account, a link is on its way."),
            h("p", {}, "It is valid for one hour and works once."),
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

/** Stays empty until the providers are known, and where none is configured. */
function providerLinks(): HTMLElement {
  const place = h("div", { class: "providers" });
  providers ??= send<Providers>("GET", "/auth/providers").then(
    (answer) => answer.providers.map(providerLink),
    // Signing in with a password still works.
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
