/** /reset: sets a new password with the token from the email. */
import { useState } from "react";
import { useLinkToken } from "../../app/link-token.ts";
import { send } from "../../api/request.ts";
import { ChoiceField, NewPasswordField } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";
import { getInvalidLinkMessage } from "./invalid-link.ts";
import { LinkResult } from "./link-result.tsx";

const TOKEN_CHOICES = [
  { value: "revoke", title: "Revoke them, because another person may have had access." },
  { value: "keep", title: "Keep them, because all of them are mine." },
] as const;

export function Page() {
  const token = useLinkToken();
  const [result, setResult] = useState<"done" | { invalid: string } | null>(null);
  if (token === null) {
    return (
      <LinkResult title="This link is incomplete" next="Go to sign-in">
        <p>Open the link in the email again. It is valid for one hour and works once.</p>
      </LinkResult>
    );
  }
  if (result === "done") {
    return (
      <LinkResult title="Done" next="Sign in">
        <p role="status">Your new password is set. All sessions were signed out.</p>
      </LinkResult>
    );
  }
  if (result !== null) {
    return (
      <LinkResult title="This link is no longer valid" next="Request a new link">
        <p role="alert">{result.invalid}</p>
      </LinkResult>
    );
  }
  return (
    <Step title="Set a new password">
      <Form
        submit="Set the password"
        onSubmit={async (value) => {
          const keep_tokens = value("tokens") === "keep";
          const body = { token, new_password: value("new_password"), keep_tokens };
          await send("POST", "/auth/reset", { body }).then(
            () => setResult("done"),
            (error: unknown) => setResult({ invalid: getInvalidLinkMessage(error) }),
          );
        }}
      >
        <NewPasswordField name="new_password" label="New password" />
        <ChoiceField
          name="tokens"
          label="Tokens you created"
          choices={TOKEN_CHOICES}
          chosen="revoke"
        />
      </Form>
    </Step>
  );
}
