/** /setup: creates the owner's account of a new server, with the code that the server has printed. */
import { useState } from "react";
import type { SetupResult } from "../../../protocol/schemas/accounts/devices.ts";
import { send } from "../../api/request.ts";
import { EmailField, NewPasswordField, TextField } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";
import { signInWithPassword } from "./password-sign-in.ts";
import { useRouter } from "@tanstack/react-router";

export function Page() {
  const router = useRouter();
  const [needsSignIn, setNeedsSignIn] = useState(false);
  if (needsSignIn) {
    return (
      <Step key="done" title="Your server is set up">
        <p role="status">Sign in with the account that you have just created.</p>
        <div className="actions">
          <a className="button primary" href="/">
            Sign in
          </a>
        </div>
      </Step>
    );
  }
  return (
    <Step key="setup" title="Set up this server">
      <p>Create the account of the owner. The server has printed a setup code on its console.</p>
      <Form
        submit="Create the owner's account"
        onSubmit={async (value) => {
          const account = { email: value("email"), password: value("password") };
          const body = { code: value("code").trim(), label: null, ...account };
          await send<SetupResult>("POST", "/setup", { body });
          await signInWithPassword(account.email, account.password, () => setNeedsSignIn(true));
          await router.navigate({ to: "/" });
        }}
      >
        <TextField
          name="code"
          label="Setup code"
          className="code"
          autoComplete="off"
          spellCheck={false}
        />
        <EmailField />
        <NewPasswordField name="password" label="Password" />
      </Form>
    </Step>
  );
}
