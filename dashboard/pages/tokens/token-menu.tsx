/** The actions on a token. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { MintedToken, Token } from "../../../protocol/schemas/tokens.ts";
import { call } from "../../api/session.ts";
import { tokensQuery } from "../../api/organization/tokens.ts";
import { useHasRole } from "../../app/roles.ts";
import { OpenConfirmDialog } from "../../ui/forms/dialog.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { ActionsMenu, MenuItem } from "../../ui/menu.tsx";
import { BudgetDialog } from "./budget-dialog.tsx";
import { useShowNewToken } from "./minting/new-token-dialog.tsx";

export function TokenMenu({ token }: { token: Token }) {
  const [shown, setShown] = useState<"budget" | "rotate" | "revoke" | null>(null);
  const canSetBudget = useHasRole("admin");
  const props = { token, onClose: () => setShown(null) };
  return (
    <>
      <ActionsMenu name={token.name}>
        {canSetBudget && <MenuItem onClick={() => setShown("budget")}>Set the budget…</MenuItem>}
        <MenuItem onClick={() => setShown("rotate")}>Rotate…</MenuItem>
        <MenuItem onClick={() => setShown("revoke")}>Revoke…</MenuItem>
      </ActionsMenu>
      <BudgetDialog {...props} isOpen={shown === "budget"} />
      <RotateDialog {...props} isOpen={shown === "rotate"} />
      <RevokeDialog {...props} isOpen={shown === "revoke"} />
    </>
  );
}

interface DialogProps {
  token: Token;
  isOpen: boolean;
  onClose: () => void;
}

function RotateDialog({ token: { name, nonce, kind }, ...dialog }: DialogProps) {
  const showNewToken = useShowNewToken();
  const queries = useQueryClient();
  return (
    <OpenConfirmDialog
      {...dialog}
      title={`Rotate ${name}?`}
      submit="Rotate"
      onSubmit={async () => {
        showNewToken(await call<MintedToken>("POST", `/tokens/${nonce}/rotate`));
        await queries.invalidateQueries(tokensQuery);
      }}
    >
      <p>
        A new token with the same restrictions, budget and lifetime replaces it, and is shown once.
      </p>
      <p>
        The old one stops working at once
        {kind === "agent"
          ? ": its agents are disconnected until you give them the new one."
          : ". Tokens that it minted stay valid, and belong to the new key."}
      </p>
    </OpenConfirmDialog>
  );
}

function RevokeDialog({ token: { name, nonce, kind }, ...dialog }: DialogProps) {
  const queries = useQueryClient();
  return (
    <OpenConfirmDialog
      {...dialog}
      title={`Revoke ${name}?`}
      submit="Revoke"
      name={kind === "master" ? name : undefined}
      onSubmit={async () => {
        await call("DELETE", `/tokens/${nonce}`);
        await queries.invalidateQueries(tokensQuery);
        notify(`${name} was revoked.`);
      }}
    >
      {kind === "agent" ? (
        <p>Its agents are disconnected at once. This can't be undone.</p>
      ) : (
        <p>
          All tokens that it minted are revoked with it, and their agents are disconnected. This
          can't be undone.
        </p>
      )}
    </OpenConfirmDialog>
  );
}
