/** The password of a tunnel (HTTP Basic authentication). */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  BASIC_AUTH_PASSWORD_MIN_CHARS,
  BASIC_AUTH_USERNAME_MAX_CHARS,
} from "../../../../protocol/limits.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { call } from "../../../api/session.ts";
import { updateCachedTunnel } from "../../../api/tunnels.ts";
import { useHasRole } from "../../../app/roles.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyButton } from "../../../ui/copy.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { ConfirmButton, DialogButton } from "../../../ui/forms/dialog.tsx";
import { TextField } from "../../../ui/forms/fields.tsx";
import { GateSection } from "./gate-section.tsx";

const GENERATED_CHARS = 20;
const GROUP_CHARS = 5;
/** Without characters that look alike. Its length divides 256, so that every character is equally likely. */
const ALPHABET = "abcdefghjkmnpqrstuvwxyz023456789";

export function PasswordSection({ tunnel }: { tunnel: Tunnel }) {
  const { id, authEnabled: isOn } = tunnel;
  const queries = useQueryClient();
  const canChange = useHasRole("member");
  const path = `/tunnels/${id}/auth`;
  const set = (
    <DialogButton
      button={{
        children: isOn ? "Change" : "Set up",
        "aria-label": isOn ? "Change the password" : "Set up a password",
      }}
      title={isOn ? "Change the password" : "Set up a password"}
      submit="Save"
      onSubmit={async (value) => {
        await call("PUT", path, { username: value("username"), password: value("password") });
        await updateCachedTunnel(queries, id, { authEnabled: true });
        notify("Visitors need the password from now on.");
      }}
    >
      <PasswordFields />
    </DialogButton>
  );
  const remove = (
    <ConfirmButton
      button={{ children: "Remove", "aria-label": "Remove the password" }}
      title="Remove the password?"
      submit="Remove"
      onSubmit={async () => {
        await call("DELETE", path);
        await updateCachedTunnel(queries, id, { authEnabled: false });
        notify("A password is no longer required.");
      }}
    >
      <p>Visitors no longer need a password. The password can't be restored.</p>
    </ConfirmButton>
  );
  return (
    <GateSection
      title="Password"
      isOn={isOn}
      about="Browsers ask for a username and a password (HTTP Basic). The local server does not receive them."
      actions={
        canChange && (
          <>
            {set}
            {isOn && remove}
          </>
        )
      }
    />
  );
}

/** The password can be read, because its purpose is to be given to others. It is never shown again. */
function PasswordFields() {
  const [password, setPassword] = useState(generatePassword);
  return (
    <>
      <TextField
        name="username"
        label="Username"
        defaultValue="visitor"
        maxLength={BASIC_AUTH_USERNAME_MAX_CHARS}
        pattern="[^:]+"
        title="Without a colon"
        autoComplete="off"
        spellCheck={false}
      />
      <TextField
        name="password"
        label="Password"
        className="code"
        value={password}
        onChange={(event) => setPassword(event.currentTarget.value)}
        minLength={BASIC_AUTH_PASSWORD_MIN_CHARS}
        autoComplete="off"
        spellCheck={false}
        hint={`Use at least ${BASIC_AUTH_PASSWORD_MIN_CHARS} characters. Copy it now: it is not shown again.`}
      />
      <div className="actions">
        <CopyButton text={password} label="Copy the password" />
        <Button onClick={() => setPassword(generatePassword())}>Generate another one</Button>
      </div>
    </>
  );
}

/** In groups, which are easier to read and to type. */
function generatePassword(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(GENERATED_CHARS));
  const characters = Array.from(bytes, (byte, at) => {
    const separator = at > 0 && at % GROUP_CHARS === 0 ? "-" : "";
    return separator + ALPHABET[byte % ALPHABET.length];
  });
  return characters.join("");
}
