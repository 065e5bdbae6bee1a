/** The button that opens the dialog to mint a token. */
import { useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { MintTokenDialog } from "./mint-token-dialog.tsx";

export function MintTokenButton() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind="primary" onClick={() => setOpen(true)}>
        Mint a token
      </Button>
      <MintTokenDialog isOpen={isOpen} onClose={() => setOpen(false)} />
    </>
  );
}
