/** The second factor: on by a code of an authenticator, off by the password or a recovery code. */
import type { Me } from "../../protocol/schemas/accounts/accounts.ts";
import type { MfaEnabled, PendingSecret } from "../../protocol/schemas/accounts/mfa.ts";
import { button, h, type Child } from "../ui/element.ts";
import { codeField, digits, form, passwordField, recoveryCodeField } from "../ui/form.ts";
import { qrImage } from "../ui/qr-image.ts";
import { section, type Section } from "../ui/section.ts";
import { call, callWithProof } from "../session.ts";

/** @param turnedOn other sessions have ended. */
export function secondFactorSection(turnedOn: () => Promise<void>): Section {
  return section("Two-factor authentication", async (self) => {
    const { mfa_enabled: isOn } = await call<Me>("GET", "/auth/me");
    return isOn
      ? [
          h("p", {}, "On: signing in also requires a code from your authenticator app."),
          actions(button("Turn off", () => askForProof(self, "password"), { class: "plain" })),
        ]
      : [
          h("p", {}, "Off: anybody who knows your password can sign in."),
          actions(self.button("Set up", () => enroll(self))),
        ];
  });

  async function enroll(self: Section): Promise<void> {
    const pending = await call<PendingSecret>("POST", "/auth/mfa/enroll");
    const { otpauth_uri: uri, secret_base32: secret } = pending;
    self.replace(
      h("p", {}, "Scan this with an authenticator app, then enter the code that it shows."),
      ...qrImage(uri),
      h("p", {}, "If you can't scan it, enter this secret:"),
      h("p", { class: "shown code" }, secret.replaceAll(/.{4}(?=.)/g, "$& ")),
      h("p", {}, h("a", { href: uri }, "Open it in an app on this device")),
      form({
        fields: [codeField("Code from your authenticator app")],
        submit: "Turn on",
        beside: [cancel(self)],
        async act(value) {
          const proof = { code: digits(value("code")), secret_base32: secret };
          const path = "/auth/mfa/enroll/verify";
          showRecoveryCodes(self, (await call<MfaEnabled>("POST", path, proof)).recovery_codes);
          await turnedOn();
        },
      }),
    );
  }

  function showRecoveryCodes(self: Section, codes: string[]): void {
    const list = h("ol", { class: "codes" }, ...codes.map((code) => h("li", {}, code)));
    self.replace(
      h("p", {}, "Two-factor authentication is on. Your other sessions were signed out."),
      h("p", {}, "Store these recovery codes separately from your authenticator. Each works once."),
      h("p", {}, h("strong", {}, "They will not be shown again.")),
      list,
      actions(
        ...copyButton(self, codes.join("\n")),
        self.button("I have stored them", () => self.refresh()),
      ),
    );
  }
}

function askForProof(self: Section, kind: "password" | "recovery_code"): void {
  const isPassword = kind === "password";
  const other = isPassword ? "recovery_code" : "password";
  self.replace(
    h("p", {}, "Turn it off? Your recovery codes will no longer work."),
    form({
      fields: [isPassword ? passwordField("Your password") : recoveryCodeField()],
      submit: "Turn off",
      kind: "danger",
      beside: [cancel(self)],
      async act(value) {
        await callWithProof("/auth/mfa/disable", { [kind]: value(kind) });
        await self.refresh("Two-factor authentication is off.");
      },
    }),
    h(
      "div",
      { class: "links" },
      button(isPassword ? "Use a recovery code" : "Use your password", () =>
        askForProof(self, other),
      ),
    ),
  );
}

function cancel(self: Section): Child {
  return button("Cancel", () => void self.refresh(), { class: "plain" });
}

function actions(...children: Child[]): Child {
  return h("div", { class: "actions" }, ...children);
}

/** Browsers have a clipboard for pages that came over HTTPS, or from this machine. */
function copyButton(self: Section, text: string): Child[] {
  if (!window.isSecureContext) return [];
  const copy = self.button("Copy", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
  });
  return [copy];
}
