/** A domain whose ownership is not proven yet. */
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { useHasRole } from "../../app/roles.ts";
import { ConfirmButton } from "../../ui/forms/dialog.tsx";
import { Badge, Row } from "../../ui/section.tsx";
import { useReleaseDomain } from "./use-release-domain.ts";
import { VerificationStep } from "./verification-step.tsx";

export function UnverifiedDomain({ domain }: { domain: CustomDomain }) {
  const release = useReleaseDomain();
  const { domain: name } = domain;
  const removeButton = (
    <ConfirmButton
      button={{ children: "Remove", kind: "quiet", "aria-label": `Remove ${name}` }}
      title={`Remove ${name}?`}
      submit="Remove"
      onSubmit={() => release(domain)}
    >
      <p>If you add it again, it gets another record.</p>
    </ConfirmButton>
  );
  return (
    <Row>
      <div className="domain-header">
        <div>
          <strong>{name}</strong>
          <Badge tone="warning">not verified</Badge>
        </div>
        {useHasRole("member") && removeButton}
      </div>
      <p className="hint">
        Publish this record within 7 days. It proves that the domain is yours, and must stay.
      </p>
      <VerificationStep domain={domain} />
    </Row>
  );
}
