/** Shows the secret to the user's authenticator app, and asks for the code that the app shows. */
import type { TotpEnrollment } from "../../../protocol/schemas/accounts/mfa.ts";
import { Button } from "../../ui/button.tsx";
import { CodeField, removeSpaces } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { QrCode } from "../../ui/figures/qr-code.tsx";

interface Props {
  enrollment: TotpEnrollment;
  onCode: (code: string) => Promise<void>;
  onCancel: () => void;
}

export function AuthenticatorStep({ enrollment, onCode, onCancel }: Props) {
  const { otpauth_uri: uri, secret_base32: secret } = enrollment;
  return (
    <>
      <p>Scan this with an authenticator app, then enter the code that it shows.</p>
      <QrCode text={uri} label="QR code with the secret for an authenticator app" />
      <p>If you can't scan it, enter this secret:</p>
      <p className="shown code">{secret.replaceAll(/.{4}(?=.)/g, "$& ")}</p>
      <p>
        <a href={uri}>Open it in an app on this device</a>
      </p>
      <Form
        submit="Turn on"
        beside={<Button onClick={onCancel}>Cancel</Button>}
        onSubmit={(value) => onCode(removeSpaces(value("code")))}
      >
        <CodeField label="Code from your authenticator app" />
      </Form>
    </>
  );
}
