/** The second factor: a code of an authenticator turns it on, the password or a recovery code turns it off. */
import type { Me } from "../../protocol/schemas/accounts/accounts.ts";
import type { MfaEnabled, TotpEnrollment } from "../../protocol/schemas/accounts/mfa.ts";
import { createButton, h, type Child } from "../ui/element.ts";
import {
  createCodeField,
  removeSpaces,
  createForm,
  createPasswordField,
  createRecoveryCodeField,
} from "../ui/form.ts";
import { createQrImage } from "../ui/qr-image.ts";
import { createSection, type Section } from "../ui/section.ts";
import { call, callWithoutRenewal } from "../session.ts";

/** @param onTurnedOn runs when the second factor is on, and the other sessions have ended. */
export function createSecondFactorSection(onTurnedOn: () => Promise<void>): Section {
  return createSection("Two-factor authentication", async (self) => {
    const { mfa_enabled: isOn } = await call<Me>("GET", "/auth/me");
    return isOn
      ? [
          h("p", {}, "On: signing in also requires a code from your authenticator app."),
          createActions(
            createButton("Turn off", () => askForProof(self, "password"), { class: "plain" }),
          ),
        ]
      : [
          h("p", {}, "Off: anyone who knows your password can sign in."),
          createActions(self.createButton("Set up", () => enroll(self))),
        ];
  });

  async function enroll(self: Section): Promise<void> {
    const pending = await call<TotpEnrollment>("POST", "/auth/mfa/enroll");
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
          showRecoveryCodes(self, (await call<MfaEnabled>("POST", path, proof)).recovery_codes);
          await onTurnedOn();
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
