/** The second factor: a code of an authenticator turns it on, the password or a recovery code turns it off. */
import type { Me } from "../../protocol/schemas/accounts/accounts.ts";
import type { MfaEnabled, TotpEnrollment } from "../../protocol/schemas/accounts/mfa.ts";
import { createButton, createTime, h, type Child } from "../ui/element.ts";
import {
  createCodeField,
  removeSpaces,
  createForm,
  createPasswordField,
  createRecoveryCodeField,
} from "../ui/form.ts";
import { createQrImage } from "../ui/qr-image.ts";
import { createSection, type Section } from "../ui/section.ts";
import { RequestError } from "../request.ts";
import { call, callWithoutRenewal, signOut } from "../session.ts";

/** @param onTurnedOn runs when the second factor is on, and the other sessions have ended. */
export function createSecondFactorSection(onTurnedOn: () => Promise<void>): Section {
  return createSection("Two-factor authentication", async (self) => {
    const me = await call<Me>("GET", "/auth/me");
    const { mfa_enabled: isOn, mfa_removable_at: removableAt } = me;
    return isOn
      ? [
          h("p", {}, "On: signing in also requires a code from your authenticator app."),
          ...(removableAt === null ? [] : createRemovalNotice(self, removableAt)),
          createActions(
            createButton("Turn off", () => askForProof(self, "password"), { class: "plain" }),
          ),
        ]
      : [
          h("p", {}, "Off: anyone who knows your password can sign in."),
          createActions(
            self.createButton("Set up", () => withFreshSession(self, me, () => enroll(self, me))),
          ),
        ];
  });

  async function enroll(self: Section, me: Me): Promise<void> {
    showEnrollment(self, me, await call<TotpEnrollment>("POST", "/auth/mfa/enroll"));
  }

  function showEnrollment(self: Section, me: Me, pending: TotpEnrollment): void {
    const { otpauth_uri: uri, secret_base32: secret } = pending;
    self.showContent(
      h("p", {}, "Scan this with an authenticator app, then enter the code that it shows."),
      ...createQrImage(uri),
      h("p", {}, "If you can't scan it, enter this secret:"),
      h("p", { class: "shown code" }, secret.replaceAll(/.{4}(?=.)/g, "$& ")),
      h("p", {}, h("a", { href: uri }, "Open it in an app on this device")),
      createForm({
        fields: [createCodeField("Code from your authenticator app")],
        submit: "Turn on",
        beside: [createCancelButton(self)],
        async act(value) {
          const proof = { code: removeSpaces(value("code")), secret_base32: secret };
          const path = "/auth/mfa/enroll/verify";
          const confirm = async () => {
            showRecoveryCodes(self, (await call<MfaEnabled>("POST", path, proof)).recovery_codes);
            await onTurnedOn();
          };
          // The code may be too old after the password was entered: the same secret asks for another one.
          await withFreshSession(self, me, confirm, () => showEnrollment(self, me, pending));
        },
      }),
    );
  }

  function showRecoveryCodes(self: Section, codes: string[]): void {
    const list = h("ol", { class: "codes" }, ...codes.map((code) => h("li", {}, code)));
    self.showContent(
      h("p", {}, "Two-factor authentication is on. Your other sessions were signed out."),
      h("p", {}, "Store these recovery codes separately from your authenticator. Each works once."),
      h("p", {}, h("strong", {}, "They will not be shown again.")),
      list,
      createActions(
        ...createCopyButtons(self, codes.join("\n")),
        self.createButton("I have stored them", () => self.reloadAndFocus()),
      ),
    );
  }
}

/** Runs an action, and when it requires a fresh session, asks for the password first. @param next runs after that. */
async function withFreshSession(
  self: Section,
  me: Me,
  act: () => Promise<void>,
  next: () => void | Promise<void> = act,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    const isStale = error instanceof RequestError && error.code === "reauthentication_required";
    if (!isStale) throw error;
    if (me.has_password) askForPassword(self, next);
    else askToSignInAgain(self);
  }
}

function askForPassword(self: Section, next: () => void | Promise<void>): void {
  self.showContent(
    h("p", {}, "Your sign-in was a while ago. Enter your password to continue."),
    createForm({
      fields: [createPasswordField("Your password")],
      submit: "Continue",
      beside: [createCancelButton(self)],
      async act(value) {
        await callWithoutRenewal("/auth/reauthenticate", { password: value("password") });
        await next();
      },
    }),
  );
}

/** An account without a password proves who its user is with a sign-in through the provider. */
function askToSignInAgain(self: Section): void {
  self.showContent(
    h("p", {}, "Your sign-in was a while ago. Sign out, sign in again, and then continue here."),
    createActions(self.createButton("Sign out", signOut), createCancelButton(self)),
  );
}

function createRemovalNotice(self: Section, removableAt: string): Child[] {
  return [
    h("p", {}, "A mailed link can remove it from ", createTime(removableAt), " on."),
    createActions(
      self.createButton("Cancel the removal", async () => {
        await call("DELETE", "/auth/mfa/removal");
        await self.reloadAndFocus("The removal is canceled.");
      }),
    ),
  ];
}

function askForProof(self: Section, kind: "password" | "recovery_code"): void {
  const isPassword = kind === "password";
  const other = isPassword ? "recovery_code" : "password";
  self.showContent(
    h("p", {}, "Turn it off? Your recovery codes will no longer work."),
    createForm({
      fields: [isPassword ? createPasswordField("Your password") : createRecoveryCodeField()],
      submit: "Turn off",
      kind: "danger",
      beside: [createCancelButton(self)],
      async act(value) {
        await callWithoutRenewal("/auth/mfa/disable", { [kind]: value(kind) });
        await self.reloadAndFocus("Two-factor authentication is off.");
      },
    }),
    h(
      "div",
      { class: "links" },
      createButton(isPassword ? "Use a recovery code" : "Use your password", () =>
        askForProof(self, other),
      ),
    ),
  );
}

function createCancelButton(self: Section): Child {
  return createButton("Cancel", () => void self.reloadAndFocus(), { class: "plain" });
}

function createActions(...children: Child[]): Child {
  return h("div", { class: "actions" }, ...children);
}

/** Browsers offer the clipboard only to pages that were loaded over HTTPS or from this machine. */
function createCopyButtons(self: Section, text: string): Child[] {
  if (!window.isSecureContext) return [];
  const copy = self.createButton("Copy", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
  });
  return [copy];
}
