/** A verified domain, and the tunnel that it leads to. */
import { Link } from "@tanstack/react-router";
import { PROOF_MISSING_MAX_MS } from "../../../protocol/limits.ts";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { useTunnel } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import { Badge, Detail, Row } from "../../ui/section.tsx";
import { ExactTime, RelativeTime } from "../../ui/time.tsx";
import { DnsRecord } from "./dns-record.tsx";
import { DomainActions } from "./domain-actions.tsx";
import { VerificationStep } from "./verification-step.tsx";

export function VerifiedDomain({ domain }: { domain: CustomDomain }) {
  const { domain: name, boundTunnelId, proofMissingSince } = domain;
  const tunnel = useTunnel(boundTunnelId ?? "").data ?? undefined;
  const canChange = useHasRole("member");
  return (
    <Row>
      <div className="domain-header">
        <div>
          <strong>{name}</strong>
          {proofMissingSince === null ? (
            <Badge tone="good">verified</Badge>
          ) : (
            <Badge tone="bad">record missing</Badge>
          )}
          <Detail>
            {boundTunnelId === null ? (
              "Leads to no tunnel yet"
            ) : (
              <>
                Leads to the tunnel{" "}
                <Link to="/tunnels/$id" params={{ id: boundTunnelId }}>
                  {tunnel?.name ?? boundTunnelId}
                </Link>
              </>
            )}
          </Detail>
        </div>
        {canChange && <DomainActions domain={domain} />}
      </div>
      {tunnel && <VisitorRecord domain={name} tunnel={tunnel} />}
      {proofMissingSince !== null && <MissingProof domain={domain} since={proofMissingSince} />}
    </Row>
  );
}

/** Every name below the service's own domain leads to the service, so the tunnel's own host is a valid target. */
function VisitorRecord({ domain, tunnel }: { domain: string; tunnel: Tunnel }) {
  const url = new URL(tunnel.publicUrl);
  const target = url.hostname;
  url.hostname = domain;
  return (
    <details className="visitor-record">
      <summary>The DNS record for visitors</summary>
      <DnsRecord type="CNAME" name={domain} value={target} />
      <Detail>
        A domain without a subdomain can't have a CNAME record: use the ALIAS record of your DNS
        provider, or the addresses of {target}. Then open{" "}
        <a href={url.href} target="_blank" rel="noopener">
          {url.origin}
        </a>
        .
      </Detail>
    </details>
  );
}

function MissingProof({ domain, since }: { domain: CustomDomain; since: string }) {
  const releasedAt = new Date(new Date(since).getTime() + PROOF_MISSING_MAX_MS).toISOString();
  return (
    <>
      <div className="notice bad">
        <p>
          Its TXT record has been missing since <ExactTime timestamp={since} />. Publish it again,
          or the domain is released <RelativeTime timestamp={releasedAt} />.
        </p>
      </div>
      <VerificationStep domain={domain} />
    </>
  );
}
