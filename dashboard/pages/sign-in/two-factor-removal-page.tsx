/** /two-factor: removes the second factor with the token from the email, or cancels the removal. */
import { useState } from "react";
import { useLinkToken } from "../../app/link-token.ts";
import { send } from "../../api/request.ts";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";
import { getInvalidLinkMessage } from "./invalid-link.ts";
import { LinkResult } from "./link-result.tsx";

const NEXT = "Go to sign-in";

export function Page() {
  const token = useLinkToken();
  const [result, setResult] = useState<{ done: string } | { invalid: string } | null>(null);
  if (token === null) {
    return (
      <LinkResult title="This link is incomplete" next={NEXT}>
        <p>Open the link in the email again.</p>
      </LinkResult>
    );
  }
  if (result !== null && "done" in result) {
    return (
      <LinkResult title="Done" next={NEXT}>
        <p role="status">{result.done}</p>
      </LinkResult>
    );
  }
  if (result !== null) {
    return (
      <LinkResult title="This link is no longer valid" next={NEXT}>
        <p role="alert">{result.invalid}</p>
      </LinkResult>
    );
  }
  const act = (path: string, done: string) => () =>
    send("POST", path, { body: { token } }).then(
      () => setResult({ done }),
      (error: unknown) => setResult({ invalid: getInvalidLinkMessage(error) }),
    );
  return (
    <Step title="Remove two-factor authentication">
      <p>Removing it is possible 24 hours after the request. All sessions will be signed out.</p>
      <Form
        submit="Remove two-factor authentication"
        kind="danger"
        onSubmit={act("/auth/mfa/removal/complete", "Two-factor authentication is off.")}
      />
      <p>If you did not ask for this, cancel the request, then set a new password.</p>
      <Form
        submit="Cancel the request"
        kind="plain"
        onSubmit={act("/auth/mfa/removal/cancel", "The request is canceled.")}
      />
    </Step>
  );
}
