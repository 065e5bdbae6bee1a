/** Two-factor authentication: a code of an authenticator app turns it on, the password or a recovery code turns it off. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { MfaEnabled, TotpEnrollment } from "../../../protocol/schemas/accounts/mfa.ts";
import { sessionsQuery } from "../../api/session-list.ts";
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
import { personalEventsFilter } from "../audit/event-filter.ts";
import { AuthenticatorStep } from "./authenticator-step.tsx";
import { ReauthenticationStep, requiresReauthentication } from "./reauthentication-step.tsx";

type State =
  | { phase: "idle" }
  | { phase: "reauthenticating"; onReauthenticated: () => void | Promise<void> }
  | { phase: "enrolling"; enrollment: TotpEnrollment }
  | { phase: "enabled"; recoveryCodes: string[] }
  | { phase: "turning-off"; proof: "password" | "recovery_code" };

export function SecondFactorSection() {
  const me = useMe();
  const queries = useQueryClient();
  const [state, setState] = useState<State>({ phase: "idle" });
  const content = useRef<HTMLDivElement>(null);
  const cancel = () => setState({ phase: "idle" });
  const reloadEvents = () => queries.invalidateQueries(personalEventsFilter);

  useEffect(() => {
    if (state.phase !== "idle") content.current?.querySelector<HTMLElement>("form input")?.focus();
  }, [state]);

  /**
   * Acts. If that requires a fresh session, asks for the password first.
   * @param next runs once the session is fresh; by default the same action again.
   */
  async function withFreshSession(
    act: () => Promise<void>,
    next: () => void | Promise<void> = act,
  ): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!requiresReauthentication(error)) throw error;
      setState({ phase: "reauthenticating", onReauthenticated: next });
    }
  }

  async function enroll(): Promise<void> {
    const enrollment = await call<TotpEnrollment>("POST", "/auth/mfa/enroll");
    setState({ phase: "enrolling", enrollment });
  }

  /** The code may expire while the user enters the password, so the form then asks for another code of the same secret. */
  async function confirm(enrollment: TotpEnrollment, code: string): Promise<void> {
    const proof = { code, secret_base32: enrollment.secret_base32 };
    await withFreshSession(
      async () => {
        const enabled = await call<MfaEnabled>("POST", "/auth/mfa/enroll/verify", proof);
        setState({ phase: "enabled", recoveryCodes: enabled.recovery_codes });
        await Promise.all([queries.invalidateQueries(sessionsQuery), reloadEvents()]);
      },
      () => setState({ phase: "enrolling", enrollment }),
    );
  }

  async function finish(message?: string): Promise<void> {
    await Promise.all([loadMe(), reloadEvents()]);
    setState({ phase: "idle" });
    if (message !== undefined) notify(message);
  }

  function renderState() {
    switch (state.phase) {
      case "idle":
        return me.mfa_enabled ? (
          <SecondFactorOn
            removableAt={me.mfa_removable_at}
            onTurnOff={() => setState({ phase: "turning-off", proof: "password" })}
          />
        ) : (
          <>
            <p>Off: anyone who knows your password can sign in.</p>
            <div className="actions">
              <ActionButton action={() => withFreshSession(enroll)}>Set up</ActionButton>
            </div>
          </>
        );
      case "reauthenticating":
        return (
          <ReauthenticationStep onReauthenticated={state.onReauthenticated} onCancel={cancel} />
        );
      case "enrolling":
        return (
          <AuthenticatorStep
            enrollment={state.enrollment}
            onCode={(code) => confirm(state.enrollment, code)}
            onCancel={cancel}
          />
        );
      case "enabled":
        return <RecoveryCodes codes={state.recoveryCodes} onStored={() => finish()} />;
      case "turning-off":
        return (
          <TurnOffForm
            proof={state.proof}
            onChangeProof={(proof) => setState({ phase: "turning-off", proof })}
            onDone={() => finish("Two-factor authentication is off.")}
            onCancel={cancel}
          />
        );
    }
  }
  return (
    <Section title="Two-factor authentication">
      <div ref={content}>{renderState()}</div>
    </Section>
  );
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
  proof: "password" | "recovery_code";
  onChangeProof: (proof: TurnOffFormProps["proof"]) => void;
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
