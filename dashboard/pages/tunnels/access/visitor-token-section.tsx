/** Tokens for visitors of a tunnel whose policy validates them. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { VISITOR_TOKEN_SUBJECT_MAX_CHARS } from "../../../../protocol/limits.ts";
import type { MintedVisitorToken } from "../../../../protocol/schemas/access/visitor-tokens.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { call } from "../../../api/session.ts";
import { useHasRole } from "../../../app/roles.ts";
import { Command } from "../../../ui/copy.tsx";
import { DialogButton } from "../../../ui/forms/dialog.tsx";
import { SelectField, TextField } from "../../../ui/forms/fields.tsx";
import { Section } from "../../../ui/section.tsx";
import { ExactTime } from "../../../ui/time.tsx";

/** The values are seconds. */
const LIFETIMES = [
  { value: "3600", label: "1 hour" },
  { value: "28800", label: "8 hours" },
  { value: "86400", label: "24 hours" },
];

/** With the visitor for whom it was minted. */
interface NewVisitorToken extends MintedVisitorToken {
  subject: string;
}

export function VisitorTokenSection({ tunnel }: { tunnel: Tunnel }) {
  const [minted, setMinted] = useState<NewVisitorToken>();
  const canMint = useHasRole("member");
  return (
    <Section
      title="Visitor tokens"
      actions={canMint && <MintButton tunnel={tunnel} onMint={setMinted} />}
    >
      <p className="hint">
        A program sends its token as <code>Authorization: Bearer</code>. The action{" "}
        <code>jwt_validation</code> of the{" "}
        <Link to="." search={{ tab: "policy" }}>
          policy
        </Link>{" "}
        accepts it if the action names no issuers.
      </p>
      {tunnel.policyActions === 0 && (
        <p className="notice" role="note">
          The policy has no rules yet, so no token is checked.
        </p>
      )}
      {minted && (
        <div className="notice" role="note" aria-label="The new token">
          <p>
            The token of <bdi>{minted.subject}</bdi> is valid until{" "}
            <ExactTime timestamp={minted.expiresAt} />. Copy it now: it is not shown again.
          </p>
          <Command label="Copy the token">{minted.token}</Command>
        </div>
      )}
    </Section>
  );
}

interface MintButtonProps {
  tunnel: Tunnel;
  onMint: (token: NewVisitorToken) => void;
}

function MintButton({ tunnel, onMint }: MintButtonProps) {
  return (
    <DialogButton
      button={{ children: "Mint a token" }}
      title="Mint a token for a visitor"
      submit="Mint"
      onSubmit={async (value) => {
        const subject = value("subject").trim();
        const request = { subject, ttl_seconds: Number(value("ttl_seconds")) };
        const path = `/tunnels/${tunnel.id}/visitor-tokens`;
        onMint({ ...(await call<MintedVisitorToken>("POST", path, request)), subject });
      }}
    >
      <TextField
        name="subject"
        label="Visitor"
        maxLength={VISITOR_TOKEN_SUBJECT_MAX_CHARS}
        autoComplete="off"
        hint={
          <>
            Who will use the token. Becomes the token's <code>sub</code> claim.
          </>
        }
      />
      <SelectField name="ttl_seconds" label="Valid for" options={LIFETIMES} />
      <p className="hint">A token can't be revoked.</p>
    </DialogButton>
  );
}
