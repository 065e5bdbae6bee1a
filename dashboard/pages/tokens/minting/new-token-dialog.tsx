/**
 * The dialog that shows a new token, once. It belongs to the page: the row whose token was rotated is gone when the list
 * has loaded again.
 */
import { createContext, useContext, useState, type ReactNode } from "react";
import type { MintedToken } from "../../../../protocol/schemas/tokens.ts";
import { Button } from "../../../ui/button.tsx";
import { Command, CopyButton } from "../../../ui/copy.tsx";
import { OpenDialog } from "../../../ui/forms/dialog.tsx";
import { CheckField } from "../../../ui/forms/fields.tsx";
import { downloadFile } from "../../../ui/text/download.ts";
import { getTokenCommands } from "./token-commands.ts";

const ShowNewToken = createContext<(token: MintedToken) => void>(() => {});

/** Shows the token above the page, until the user has saved it. */
export function useShowNewToken(): (token: MintedToken) => void {
  return useContext(ShowNewToken);
}

export function NewTokenProvider({ children }: { children: ReactNode }) {
  const [token, setToken] = useState<MintedToken | null>(null);
  return (
    <ShowNewToken value={setToken}>
      {children}
      {/* Neither Escape nor a click beside it closes this dialog. */}
      <OpenDialog
        isOpen={token !== null}
        onClose={() => {}}
        title={token?.kind === "master" ? "Save the master key" : "Save the token"}
      >
        {token && <NewToken token={token} onClose={() => setToken(null)} />}
      </OpenDialog>
    </ShowNewToken>
  );
}

interface NewTokenProps {
  token: MintedToken;
  onClose: () => void;
}

function NewToken({ token, onClose }: NewTokenProps) {
  const text = token.bearer ?? token.wireBytes;
  const [isSaved, setSaved] = useState(false);
  return (
    <>
      <p>
        This is the only time that the {token.kind === "master" ? "master key" : "token"}{" "}
        <bdi>{token.name}</bdi> is shown. Anyone who has it can use it until it expires or is
        revoked.
      </p>
      <div className="secret">
        <code>{text}</code>
        <div className="actions">
          <CopyButton text={text} label="Copy the token" kind="primary" />
          <Button onClick={() => downloadFile(getFileName(token), `${text}\n`)}>
            Download as a file
          </Button>
        </div>
      </div>
      <dl className="token-commands">
        {getTokenCommands(token).map(({ title, command }) => (
          <div key={title}>
            <dt className="hint">{title}</dt>
            <dd>
              <Command>{command}</Command>
            </dd>
          </div>
        ))}
      </dl>
      <CheckField
        name="saved"
        label="I have saved it"
        onChange={(event) => setSaved(event.currentTarget.checked)}
      />
      <div className="actions">
        <Button kind="primary" disabled={!isSaved} onClick={onClose}>
          Close
        </Button>
      </div>
    </>
  );
}

/** Without the characters that some system does not allow in the name of a file. */
function getFileName({ name }: MintedToken): string {
  return `${name.replaceAll(/[^\p{L}\p{N}._-]+/gu, "-")}.token`;
}
