/** A verified domain, and the tunnel that it leads to. */
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { domainsQuery } from "../../api/domains.ts";
import { call } from "../../api/session.ts";
import { tunnelsQuery, useTunnel } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import { Button } from "../../ui/button.tsx";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";
import { OpenConfirmDialog } from "../../ui/forms/dialog.tsx";
import { Menu, MenuItem, MenuSeparator } from "../../ui/menu.tsx";
import { Badge, Detail, Row } from "../../ui/section.tsx";
import { ExactTime, RelativeTime } from "../../ui/time.tsx";
import { BindDialog } from "./bind-dialog.tsx";
import { DnsRecord } from "./dns-record.tsx";
import { useReleaseDomain } from "./use-release-domain.ts";
import { VerificationStep } from "./verification-step.tsx";

/** A verified domain without its record is released after this. */
const PROOF_MISSING_MAX_MS = 7 * 24 * 3600 * 1000;

export function VerifiedDomain({ domain }: { domain: CustomDomain }) {
  const { domain: name, boundTunnelId, proofMissingSince } = domain;
  const tunnel = useTunnel(boundTunnelId ?? "").data ?? undefined;
  const mayChange = useHasRole("member");
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
        {mayChange && <DomainActions domain={domain} tunnel={tunnel} />}
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

interface ActionsProps {
  domain: CustomDomain;
  tunnel: Tunnel | undefined;
}

function DomainActions({ domain, tunnel }: ActionsProps) {
  const { id, domain: name, boundTunnelId } = domain;
  const queries = useQueryClient();
  const release = useReleaseDomain();
  const [shown, setShown] = useState<"bind" | "remove" | null>(null);
  const isBound = boundTunnelId !== null;
  const close = () => setShown(null);
  const reload = () =>
    Promise.all([queries.invalidateQueries(domainsQuery), queries.invalidateQueries(tunnelsQuery)]);

  async function bindAgain(): Promise<void> {
    await call("PUT", `/domains/${id}/bind`, { tunnel_id: boundTunnelId });
    await reload();
  }
  async function unbind(): Promise<void> {
    await call("DELETE", `/domains/${id}/bind`);
    await reload();
    notify(`${name} leads to no tunnel now.`, {
      label: "Undo",
      act: () => void bindAgain().catch(notifyOfError),
    });
  }
  return (
    <div className="actions">
      {!isBound && (
        <Button aria-label={`Choose the tunnel of ${name}`} onClick={() => setShown("bind")}>
          Choose a tunnel
        </Button>
      )}
      <Menu
        trigger={
          <Button kind="quiet" aria-label={`Actions for ${name}`}>
            ⋯
          </Button>
        }
      >
        {isBound && (
          <>
            <MenuItem onClick={() => setShown("bind")}>Choose another tunnel…</MenuItem>
            <MenuItem onClick={() => void unbind().catch(notifyOfError)}>
              Unbind from {tunnel?.name ?? "its tunnel"}
            </MenuItem>
            <MenuSeparator />
          </>
        )}
        <MenuItem onClick={() => setShown("remove")}>Remove…</MenuItem>
      </Menu>
      <BindDialog domain={domain} isOpen={shown === "bind"} onClose={close} onBind={reload} />
      <OpenConfirmDialog
        isOpen={shown === "remove"}
        onClose={close}
        title={`Remove ${name}?`}
        submit="Remove"
        name={name}
        onSubmit={() => release(domain)}
      >
        <p>
          It leads to no tunnel from then on, and any organization can claim it. To use it again,
          you verify it with another record.
        </p>
      </OpenConfirmDialog>
    </div>
  );
}
