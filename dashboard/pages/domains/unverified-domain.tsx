/** A domain whose ownership is not proven yet. */
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { useHasRole } from "../../app/roles.ts";
import { Badge, Detail, Row } from "../../ui/section.tsx";
import { DomainActions } from "./domain-actions.tsx";
import { VerificationStep } from "./verification-step.tsx";

export function UnverifiedDomain({ domain }: { domain: CustomDomain }) {
  return (
    <Row>
      <div className="domain-header">
        <div>
          <strong>{domain.domain}</strong>
          <Badge tone="warning">not verified</Badge>
          <Detail>
            Publish this record within 7 days. It proves that the domain is yours, and must stay
            published.
          </Detail>
        </div>
        {useHasRole("member") && <DomainActions domain={domain} />}
      </div>
      <VerificationStep domain={domain} />
    </Row>
  );
}
