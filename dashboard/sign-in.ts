/** The steps of signing in, the same on every page that requires it. */
import type { AccountSummary, MfaRequired, Status } from "../protocol/schemas/accounts/accounts.ts";
import type { ProviderName, Providers } from "../protocol/schemas/accounts/providers.ts";
import { createButton, h, runWhileBusy, type Child } from "./ui/element.ts";
import {
  createCodeField,
  removeSpaces,
  createEmailField,
  createForm,
  createNewPasswordField,
  createPasswordField,
  createRecoveryCodeField,
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
    if (options.challenge) steps.showSecondFactor(options.challenge);
    else steps.showPassword({ notice: options.notice });
  });
}

interface PasswordStep {
  email?: string;
  notice?: string;
}

function createSteps(done: (accessToken: string) => void, { title, intro }: SignInOptions) {
  async function logIn(email: string, password: string): Promise<void> {
    const answer = await send<AccountSummary | MfaRequired>("POST", "/auth/login", {
      email,
      password,
    });
    if ("mfa_required" in answer) showSecondFactor(answer.challenge_token);
    else done(answer.access_token);
  }

  function showPassword({ email = "", notice = "" }: PasswordStep = {}): void {
    const emailInput = createEmailField(email);
    const typed = () => emailInput.control.value;
    const links = [
      createButton("Create an account", () => showSignUp(typed())),
      createButton("Forgot your password?", () => showForgotPassword(typed())),
    ];
    showStep(
      title,
      ...(notice ? [h("p", { role: "status", class: "notice" }, notice)] : []),
      ...(intro ? [h("p", {}, intro)] : []),
      createForm({
        fields: [emailInput, createPasswordField("Password")],
        submit: "Sign in",
        act: (value) => logIn(value("email"), value("password")),
      }),
      createProviderLinks(),
      h("div", { class: "links" }, ...links),
    );
  }

  function showSecondFactor(challenge: string): void {
    const sendProof = async (proof: object) => {
      const body = { challenge_token: challenge, ...proof };
      done((await send<AccountSummary>("POST", "/auth/login/mfa", body)).access_token);
    };
    const again = createButton("Start again", () => showPassword());
    const lost = createButton("I have neither", () => showRemovalStep());
    const showCodeStep = () =>
      showStep(
        "Two-factor authentication",
        createForm({
          fields: [createCodeField("Code from your authenticator app")],
          submit: "Continue",
          act: (value) => sendProof({ code: removeSpaces(value("code")) }),
        }),
        h(
          "div",
          { class: "links" },
          createButton("Use a recovery code", showRecoveryCodeStep),
          lost,
          again,
        ),
      );
    const showRecoveryCodeStep = () =>
      showStep(
        "Recovery code",
        h(
          "p",
          {},
          "Enter one of the recovery codes that you stored when you set up two-factor authentication. Each works once.",
        ),
        createForm({
          fields: [createRecoveryCodeField()],
          submit: "Continue",
          act: (value) => sendProof({ recovery_code: value("recovery_code") }),
        }),
        h(
          "div",
          { class: "links" },
          createButton("Use your authenticator app", showCodeStep),
          again,
        ),
      );
    const showRemovalStep = () =>
      showStep(
        "Remove two-factor authentication",
        h(
          "p",
          {},
          "We will email you a link that removes it. The link works after 24 hours, in which you can cancel it.",
        ),
        createForm({
          submit: "Send the link",
          async act() {
            await send("POST", "/auth/mfa/removal", { challenge_token: challenge });
            showStep(
              "Check your email",
              h(
                "p",
                { role: "status" },
                "A link is on its way, unless one was sent within the last day.",
              ),
              h(
                "div",
                { class: "links" },
                createButton("Back to sign in", () => showPassword()),
              ),
            );
          },
        }),
        h("div", { class: "links" }, createButton("Back", showCodeStep), again),
      );
    showCodeStep();
  }

  function showSignUp(typed: string): void {
    showStep(
      "Create an account",
      createForm({
        fields: [createEmailField(typed), createNewPasswordField("password", "Password")],
        submit: "Create account",
        async act(value) {
          const account = { email: value("email"), password: value("password") };
          await send("POST", "/auth/signup", account);
          showEmailConfirmation(account);
        },
      }),
      h(
        "div",
        { class: "links" },
        createButton("I already have an account", () => showPassword({ email: typed })),
      ),
    );
  }

  function showEmailConfirmation({
    email,
    password: chosen,
  }: {
    email: string;
    password: string;
  }): void {
    const status = h("p", { role: "status" });
    const another = createButton("Send another code", () => {
      void runWhileBusy(another, async () => {
        status.textContent = await send("POST", "/auth/resend-verify-otp", { email }).then(
          () => "A new code was sent. Earlier codes are no longer valid.",
          getErrorMessage,
        );
      });
    });
    const back = createButton("Back", () => showSignUp(email));
    showStep(
      "Check your email",
      h("p", {}, "We sent an email to ", h("strong", {}, email), ". It contains a 6-digit code."),
      createForm({
        fields: [createCodeField("Code")],
        submit: "Confirm",
        async act(value) {
          const body = { email, code: removeSpaces(value("code")) };
          const { status } = await send<Status>("POST", "/auth/verify-email-otp", body);
          if (status === "password_required") showPasswordLinkSent(email);
          else await logIn(email, chosen);
        },
      }),
      status,
      h("div", { class: "links" }, another, back),
    );
  }

  /** Other sign-ups with this address sent another password, so none was accepted. */
  function showPasswordLinkSent(email: string): void {
    showStep(
      "Choose your password",
      h("p", {}, "Your email address is verified, but it was used to sign up more than once."),
      h(
        "p",
        {},
        "To be safe, we emailed a link to choose your password to ",
        h("strong", {}, email),
        ".",
      ),
      h(
        "div",
        { class: "links" },
        createButton("Back to sign in", () => showPassword({ email })),
      ),
    );
  }

  function showForgotPassword(typed: string): void {
    showStep(
      "Forgot your password?",
      h("p", {}, "We will email you a link to set a new one."),
      createForm({
        fields: [createEmailField(typed)],
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
              createButton("Back to sign in", () => showPassword({ email })),
            ),
          );
        },
      }),
      h(
        "div",
        { class: "links" },
        createButton("Back", () => showPassword({ email: typed })),
      ),
    );
  }

  return { showPassword, showSecondFactor };
}

// ── Providers ──

const PROVIDER_NAMES: Record<ProviderName, string> = {
  idp_a: "single sign-on",
  idp_b: "another account",
};

let providers: Promise<Child[]> | undefined;

/** Stays empty until the providers are known, and where none is configured. */
function createProviderLinks(): HTMLElement {
  const place = h("div", { class: "providers" });
  providers ??= send<Providers>("GET", "/auth/providers").then(
    (answer) => answer.providers.map(createProviderLink),
    // Signing in with a password still works.
    () => [],
  );
  void providers.then((links) => place.append(...links));
  return place;
}

function createProviderLink(name: ProviderName): Child {
  const query = new URLSearchParams({ return_to: location.pathname + location.search });
  const href = `/auth/oauth/${name}/start?${query}`;
  return h("a", { class: "button", href }, `Continue with ${PROVIDER_NAMES[name]}`);
}
