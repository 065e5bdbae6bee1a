/** Two-factor authentication: a code of an authenticator app turns it on, the password or a recovery code turns it off. */
import { useEffect, useRef } from "react";
import { call, callWithoutRenewal } from "../../api/session.ts";
import { loadMe, useMe } from "../../app/session-state.ts";
import { ActionButton, Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { PasswordField, RecoveryCodeField } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { Section } from "../../ui/section.tsx";
import { downloadFile } from "../../ui/text/download.ts";
import { ExactTime } from "../../ui/time.tsx";
import { AuthenticatorStep } from "./authenticator-step.tsx";
import { ReauthenticationStep } from "./reauthentication-step.tsx";
import { useSecondFactor, type RemovalProof, type SecondFactor } from "./use-second-factor.ts";

export function SecondFactorSection() {
  const { state, actions } = useSecondFactor();
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (state.phase !== "idle") content.current?.querySelector<HTMLElement>("form input")?.focus();
  }, [state]);
  return (
    <Section title="Two-factor authentication">
      <div ref={content}>
        <Phase state={state} actions={actions} />
      </div>
    </Section>
  );
}

function Phase({ state, actions }: SecondFactor) {
  const me = useMe();
  switch (state.phase) {
    case "idle":
      return me.mfa_enabled ? (
        <SecondFactorOn
          removableAt={me.mfa_removable_at}
          onTurnOff={() => actions.turnOffWith("password")}
        />
      ) : (
        <>
          <p>Off: anyone who knows your password can sign in.</p>
          <div className="actions">
            <ActionButton action={actions.enroll}>Set up</ActionButton>
          </div>
        </>
      );
    case "reauthenticating":
      return (
        <ReauthenticationStep
          onReauthenticated={state.onReauthenticated}
          onCancel={actions.cancel}
        />
      );
    case "enrolling":
      return (
        <AuthenticatorStep
          enrollment={state.enrollment}
          onCode={(code) => actions.confirm(state.enrollment, code)}
          onCancel={actions.cancel}
        />
      );
    case "enabled":
      return <RecoveryCodes codes={state.recoveryCodes} onStored={() => actions.finish()} />;
    case "turning-off":
      return (
        <TurnOffForm
          proof={state.proof}
          onChangeProof={actions.turnOffWith}
          onDone={() => actions.finish("Two-factor authentication is off.")}
          onCancel={actions.cancel}
        />
      );
  }
}

interface SecondFactorOnProps {
  /** From when on an emailed link can remove the second factor; null when the user requested no removal. */
  removableAt: string | null;
  onTurnOff: () => void;
}

function SecondFactorOn({ removableAt, onTurnOff }: SecondFactorOnProps) {
  async function cancelRemoval(): Promise<void> {
    await call("DELETE", "/auth/mfa/removal");
    await loadMe();
    notify("The removal is canceled.");
  }
  return (
    <>
      <p>On: signing in also requires a code from your authenticator app.</p>
      {removableAt !== null && (
        <p>
          The emailed link can turn it off from <ExactTime timestamp={removableAt} /> on.
        </p>
      )}
      <div className="actions">
        {removableAt !== null && (
          <ActionButton action={cancelRemoval}>Cancel the removal</ActionButton>
        )}
        <Button onClick={onTurnOff}>Turn off</Button>
      </div>
    </>
  );
}

interface RecoveryCodesProps {
  codes: string[];
  onStored: () => Promise<void>;
}

function RecoveryCodes({ codes, onStored }: RecoveryCodesProps) {
  const text = codes.join("\n");
  return (
    <>
      <p role="status">Two-factor authentication is on. Your other sessions were signed out.</p>
      <p>Store these recovery codes separately from your authenticator. Each works once.</p>
      <p>
        <strong>They will not be shown again.</strong>
      </p>
      <ol className="codes">
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ol>
      <div className="actions">
        <CopyButton text={text} label="Copy the recovery codes" />
        <Button onClick={() => downloadFile("underpass-recovery-codes.txt", `${text}\n`)}>
          Download as a file
        </Button>
        <ActionButton action={onStored}>I have stored them</ActionButton>
      </div>
    </>
  );
}

interface TurnOffFormProps {
  proof: RemovalProof;
  onChangeProof: (proof: RemovalProof) => void;
  onDone: () => Promise<void>;
  onCancel: () => void;
}

function TurnOffForm({ proof, onChangeProof, onDone, onCancel }: TurnOffFormProps) {
  const isPassword = proof === "password";
  return (
    <>
      <p>Turn it off? Your recovery codes will no longer work.</p>
      <Form
        key={proof}
        submit="Turn off"
        kind="danger"
        beside={<Button onClick={onCancel}>Cancel</Button>}
        onSubmit={async (value) => {
          await callWithoutRenewal("/auth/mfa/disable", { [proof]: value(proof) });
          await onDone();
        }}
      >
        {isPassword ? <PasswordField label="Your password" /> : <RecoveryCodeField />}
      </Form>
      <div className="links">
        <Button
          kind="link"
          onClick={() => onChangeProof(isPassword ? "recovery_code" : "password")}
        >
          {isPassword ? "Use a recovery code" : "Use your password"}
        </Button>
      </div>
    </>
  );
}
