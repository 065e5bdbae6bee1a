/** The steps of the second factor: a code, a recovery code, or an emailed link that removes it. */
import type { AccountSummary } from "../../../protocol/schemas/accounts/accounts.ts";
import { send } from "../../api/request.ts";
import { beginSession } from "../../api/session.ts";
import { MailNotice } from "../../app/mail-notice.tsx";
import { Button } from "../../ui/button.tsx";
import { CodeField, RecoveryCodeField, removeSpaces } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";
import type { SignInStep, StepProps } from "./steps.ts";

async function sendProof(challenge: string, proof: object): Promise<void> {
  const body = { challenge_token: challenge, ...proof };
  beginSession((await send<AccountSummary>("POST", "/auth/login/mfa", { body })).access_token);
}

function StartAgain({ goTo }: { goTo: (step: SignInStep) => void }) {
  return (
    <Button kind="link" onClick={() => goTo({ name: "password" })}>
      Start again
    </Button>
  );
}

export function CodeStep({ step: { challenge }, goTo }: StepProps<"code">) {
  return (
    <Step key="code" title="Two-factor authentication">
      <Form
        submit="Continue"
        onSubmit={(value) => sendProof(challenge, { code: removeSpaces(value("code")) })}
      >
        <CodeField label="Code from your authenticator app" />
      </Form>
      <div className="links">
        <Button kind="link" onClick={() => goTo({ name: "recovery-code", challenge })}>
          Use a recovery code
        </Button>
        <Button kind="link" onClick={() => goTo({ name: "removal", challenge })}>
          I lost both
        </Button>
        <StartAgain goTo={goTo} />
      </div>
    </Step>
  );
}

export function RecoveryCodeStep({ step: { challenge }, goTo }: StepProps<"recovery-code">) {
  return (
    <Step key="recovery-code" title="Recovery code">
      <p>
        Enter one of the recovery codes that you stored when you set up two-factor authentication.
        Each works once.
      </p>
      <Form
        submit="Continue"
        onSubmit={(value) => sendProof(challenge, { recovery_code: value("recovery_code") })}
      >
        <RecoveryCodeField />
      </Form>
      <div className="links">
        <Button kind="link" onClick={() => goTo({ name: "code", challenge })}>
          Use your authenticator app
        </Button>
        <StartAgain goTo={goTo} />
      </div>
    </Step>
  );
}

export function RemovalStep({ step: { challenge }, goTo }: StepProps<"removal">) {
  async function requestRemoval(): Promise<void> {
    await send("POST", "/auth/mfa/removal", { body: { challenge_token: challenge } });
    goTo({ name: "removal-sent" });
  }
  return (
    <Step key="removal" title="Remove two-factor authentication">
      <p>
        We will email you a link that removes it. The link works 24 hours after your request; until
        then, you can cancel the request.
      </p>
      <Form submit="Send the link" onSubmit={requestRemoval} />
      <div className="links">
        <Button kind="link" onClick={() => goTo({ name: "code", challenge })}>
          Back
        </Button>
        <StartAgain goTo={goTo} />
      </div>
    </Step>
  );
}

export function RemovalSentStep({ goTo }: StepProps<"removal-sent">) {
  return (
    <Step key="removal-sent" title="Check your email">
      <p role="status">A link is on its way, unless one was sent within the last day.</p>
      <MailNotice content="link" />
      <div className="links">
        <Button kind="link" onClick={() => goTo({ name: "password" })}>
          Back to sign in
        </Button>
      </div>
    </Step>
  );
}
