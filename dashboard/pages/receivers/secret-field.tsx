/** The secret that a receiver shares with its vendor. The API never shows it again. */
import { useState } from "react";
import { toHex } from "../../../shared/bytes.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import type { Vendor } from "./vendors.tsx";

const SECRET_BYTES = 32;

interface SecretFieldProps {
  label: string;
  vendor: Vendor;
}

export function SecretField({ label, vendor }: SecretFieldProps) {
  const [secret, setSecret] = useState("");
  return (
    <>
      <TextField
        name="secret"
        label={label}
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
        hint={`${vendor.secretHint} It is stored encrypted, and never shown again.`}
      />
      {!vendor.makesSecret && (
        <div className="actions secret-actions">
          <Button
            onClick={() => setSecret(toHex(crypto.getRandomValues(new Uint8Array(SECRET_BYTES))))}
          >
            Generate a secret
          </Button>
          {secret !== "" && <CopyButton text={secret} label="Copy the secret" />}
        </div>
      )}
    </>
  );
}
