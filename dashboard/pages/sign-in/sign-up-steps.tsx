/** Creating an account, and getting a new password by email. */
import { useState } from "react";
import type { Status } from "../../../protocol/schemas/accounts/accounts.ts";
import { getUserMessage, send } from "../../api/request.ts";
import { MailNotice } from "../../app/mail-notice.tsx";
import { ActionButton, Button } from "../../ui/button.tsx";
import { CodeField, EmailField, NewPasswordField, removeSpaces } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";
import { signInWithPassword } from "./password-sign-in.ts";
import type { SignInStep, StepProps } from "./steps.ts";

function BackToSignIn({ email, goTo }: { email: string; goTo: (step: SignInStep) => void }) {
  return (
    <div className="links">
      <Button kind="link" onClick={() => goTo({ name: "password", email })}>
        Back to sign in
      </Button>
    </div>
  );
}

export function SignUpStep({ step, goTo }: StepProps<"sign-up">) {
  const [email, setEmail] = useState(step.email);
  return (
    <Step key="sign-up" title="Create an account">
      <Form
        submit="Create account"
        onSubmit={async (value) => {
          const account = { email: value("email"), password: value("password") };
          await send("POST", "/auth/signup", { body: account });
          goTo({ name: "email-confirmation", ...account });
        }}
      >
        <EmailField email={email} onType={setEmail} />
        <NewPasswordField name="password" label="Password" />
      </Form>
      <div className="links">
        <Button kind="link" onClick={() => goTo({ name: "password", email })}>
          I already have an account
        </Button>
      </div>
    </Step>
  );
}

export function EmailConfirmationStep({ step, goTo }: StepProps<"email-confirmation">) {
  const { email, password } = step;
  const [status, setStatus] = useState("");
  async function resend(): Promise<void> {
    const sent = send("POST", "/auth/resend-verify-otp", { body: { email } });
    setStatus(
      await sent.then(
        () => "A new code was sent. Earlier codes are no longer valid.",
        getUserMessage,
      ),
    );
  }
  return (
    <Step key="email-confirmation" title="Check your email">
      <p>
        We sent an email to <strong>{email}</strong>. It contains a 6-digit code.
      </p>
      <MailNotice content="code" />
      <Form
        submit="Confirm"
        onSubmit={async (value) => {
          const body = { email, code: removeSpaces(value("code")) };
          const answer = await send<Status>("POST", "/auth/verify-email-otp", { body });
          if (answer.status === "password_required") goTo({ name: "password-link-sent", email });
          else await signInWithPassword(email, password, goTo);
        }}
      >
        <CodeField label="Code" />
      </Form>
      <p role="status">{status}</p>
      <div className="links">
        <ActionButton kind="link" action={resend}>
          Send another code
        </ActionButton>
        <Button kind="link" onClick={() => goTo({ name: "sign-up", email })}>
          Back
        </Button>
      </div>
    </Step>
  );
}

/** Several sign-ups with this address sent different passwords, so the server accepted none of them. */
export function PasswordLinkSentStep({ step: { email }, goTo }: StepProps<"password-link-sent">) {
  return (
    <Step key="password-link-sent" title="Choose your password">
      <p>Your email address is verified, but it was used to sign up more than once.</p>
      <p>
        To be safe, we emailed a link to choose your password to <strong>{email}</strong>.
      </p>
      <MailNotice content="link" />
      <BackToSignIn email={email} goTo={goTo} />
    </Step>
  );
}

export function ForgotPasswordStep({ step, goTo }: StepProps<"forgot-password">) {
  return (
    <Step key="forgot-password" title="Forgot your password?">
      <p>We will email you a link to set a new one.</p>
      <Form
        submit="Send the link"
        onSubmit={async (value) => {
          const email = value("email");
          await send("POST", "/auth/forgot", { body: { email } });
          goTo({ name: "reset-link-sent", email });
        }}
      >
        <EmailField email={step.email} />
      </Form>
      <div className="links">
        <Button kind="link" onClick={() => goTo({ name: "password", email: step.email })}>
          Back
        </Button>
      </div>
    </Step>
  );
}

export function ResetLinkSentStep({ step: { email }, goTo }: StepProps<"reset-link-sent">) {
  return (
    <Step key="reset-link-sent" title="Check your email">
      <p>
        If <strong>{email}</strong> has an account, a link is on its way.
      </p>
      <MailNotice content="link" />
      <p>It is valid for one hour and works once.</p>
      <BackToSignIn email={email} goTo={goTo} />
    </Step>
  );
}
