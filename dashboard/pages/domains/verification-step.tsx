/** The DNS record that proves the ownership of a domain, and whether it has been found. */
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { getUserMessage } from "../../api/request.ts";
import { useHasRole } from "../../app/roles.ts";
import { Button } from "../../ui/button.tsx";
import { Detail } from "../../ui/section.tsx";
import { RelativeTime } from "../../ui/time.tsx";
import { DnsRecord } from "./dns-record.tsx";
import { useVerification, type Verification } from "./use-verification.ts";

export function VerificationStep({ domain }: { domain: CustomDomain }) {
  const canChange = useHasRole("member");
  const verification = useVerification(domain);
  const { isWatching, isLookingUp, check } = verification;
  return (
    <>
      <DnsRecord
        type="TXT"
        name={`_svc-challenge.${domain.domain}`}
        value={domain.verificationToken}
      />
      <Detail>
        If your DNS provider appends the domain to each name, leave it out of the name.
      </Detail>
      {canChange && (
        <div className="verification">
          <Button isBusy={isLookingUp} onClick={check}>
            {isWatching ? "Check now" : "I have published the record"}
          </Button>
          <div aria-live="polite">{isWatching && <Progress {...verification} />}</div>
        </div>
      )}
    </>
  );
}

function Progress({ failure, error, isLookingUp }: Verification) {
  if (error !== null) return <span className="error">{getUserMessage(error)}</span>;
  if (failure === null) return "Looking for the record…";
  return (
    <>
      {failure.message}{" "}
      <span className="hint">
        {isLookingUp ? (
          "Looking again…"
        ) : (
          <>
            Checked <RelativeTime timestamp={failure.timestamp} />. This page keeps looking while it
            is open.
          </>
        )}
      </span>
    </>
  );
}
