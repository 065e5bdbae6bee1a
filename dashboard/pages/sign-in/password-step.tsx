/** The first step: the password, or a provider. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { ProviderName } from "../../../protocol/schemas/accounts/providers.ts";
import { providersQuery } from "../../api/providers.ts";
import { setupQuery } from "../../api/setup.ts";
import { Button } from "../../ui/button.tsx";
import { EmailField, PasswordField } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";
import { signInWithPassword } from "./password-sign-in.ts";
import type { StepProps } from "./steps.ts";

interface Props extends StepProps<"password"> {
  title: string;
  intro: string;
}

export function PasswordStep({ step, goTo, title, intro }: Props) {
  const [email, setEmail] = useState(step.email ?? "");
  const setup = useQuery(setupQuery);
  const providers = useQuery(providersQuery);
  // Both add content above and below the form, which must not move once it is shown.
  if (isFirstAttempt(setup) || isFirstAttempt(providers)) return null;
  return (
    <Step title={title}>
      {step.notice && (
        <p role="status" className="notice">
          {step.notice}
        </p>
      )}
      {intro !== "" && <p>{intro}</p>}
      {setup.data?.needed && <SetupNotice />}
      <Form
        submit="Sign in"
        onSubmit={(value) => signInWithPassword(value("email"), value("password"), goTo)}
      >
        <EmailField email={email} onType={setEmail} />
        <PasswordField label="Password" />
      </Form>
      <ProviderLinks names={providers.data?.providers ?? []} />
      <div className="links">
        <Button kind="link" onClick={() => goTo({ name: "sign-up", email })}>
          Create an account
        </Button>
        <Button kind="link" onClick={() => goTo({ name: "forgot-password", email })}>
          Forgot your password?
        </Button>
      </div>
    </Step>
  );
}

/** After a failed attempt the form is shown, because signing in may work without the query's result. */
function isFirstAttempt({ isPending, fetchStatus, failureCount }: UseQueryResult): boolean {
  return isPending && fetchStatus === "fetching" && failureCount === 0;
}

/** On the first visit to a new server, which has no account to sign in with. */
function SetupNotice() {
  return (
    <p role="note" className="notice">
      This server has no owner yet. <Link to="/setup">Create the owner's account</Link>.
    </p>
  );
}

const PROVIDER_NAMES: Record<ProviderName, string> = {
  idp_a: "single sign-on",
  idp_b: "another account",
};

function ProviderLinks({ names }: { names: ProviderName[] }) {
  if (names.length === 0) return null;
  const query = new URLSearchParams({ return_to: location.pathname + location.search });
  return (
    <div className="providers">
      {names.map((name) => (
        <a key={name} className="button" href={`/auth/oauth/${name}/start?${query}`}>
          Continue with {PROVIDER_NAMES[name]}
        </a>
      ))}
    </div>
  );
}
