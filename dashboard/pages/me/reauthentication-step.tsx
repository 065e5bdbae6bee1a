/** Asks the signed-in user to confirm their identity again (RFC 9470). */
import { RequestError } from "../../api/request.ts";
import { callWithoutRenewal, signOut } from "../../api/session.ts";
import { useMe } from "../../app/session-state.ts";
import { ActionButton, Button } from "../../ui/button.tsx";
import { PasswordField } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";

export function requiresReauthentication(error: unknown): boolean {
  return error instanceof RequestError && error.code === "reauthentication_required";
}

interface Props {
  /** Runs after the user has confirmed their identity. */
  onReauthenticated: () => void | Promise<void>;
  onCancel: () => void;
}

export function ReauthenticationStep({ onReauthenticated, onCancel }: Props) {
  const cancel = <Button onClick={onCancel}>Cancel</Button>;
  // The user of an account without a password confirms their identity by signing in through the provider.
  if (!useMe().has_password) {
    return (
      <>
        <p>Your sign-in was a while ago. Sign out, sign in again, and then continue here.</p>
        <div className="actions">
          <ActionButton action={signOut}>Sign out</ActionButton>
          {cancel}
        </div>
      </>
    );
  }
  return (
    <>
      <p>Your sign-in was a while ago. Enter your password to continue.</p>
      <Form
        submit="Continue"
        beside={cancel}
        onSubmit={async (value) => {
          await callWithoutRenewal("/auth/reauthenticate", { password: value("password") });
          await onReauthenticated();
        }}
      >
        <PasswordField label="Your password" />
      </Form>
    </>
  );
}
