/** A reserved name: the tunnel that uses it, or the command that opens one. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReservedSubdomain } from "../../../protocol/schemas/domains/reserved-subdomains.ts";
import { reservedSubdomainsQuery } from "../../api/domains.ts";
import { call } from "../../api/session.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import { ActionButton } from "../../ui/button.tsx";
import { formatAgentCommand } from "../../ui/text/agent-command.ts";
import { Command } from "../../ui/copy.tsx";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";
import { Badge, Detail, Row } from "../../ui/section.tsx";
import { RelativeTime } from "../../ui/time.tsx";

export function NameRow({ name }: { name: ReservedSubdomain }) {
  const { subdomain, created_at: createdAt } = name;
  const tunnels = useQuery(tunnelsQuery).data;
  const tunnel = tunnels?.find((each) => each.subdomain === subdomain);
  const canChange = useHasRole("member");
  return (
    <Row actions={canChange ? <ReleaseButton name={name} /> : undefined}>
      <strong>{subdomain}</strong>
      {tunnel ? <Badge tone="good">in use</Badge> : tunnels && <Badge>not in use</Badge>}
      <Detail>
        Reserved <RelativeTime timestamp={createdAt} />
        {tunnel && (
          <>
            {" · "}
            <Link to="/tunnels/$id" params={{ id: tunnel.id }}>
              {tunnel.publicUrl}
            </Link>
          </>
        )}
      </Detail>
      {canChange && tunnels && !tunnel && (
        <div className="reserved-name">
          <Command>{formatAgentCommand(`http 3000 --subdomain ${subdomain}`)}</Command>
        </div>
      )}
    </Row>
  );
}

/** Other organizations can have the name only a day later, so the release can be undone. */
function ReleaseButton({ name: { id, subdomain } }: { name: ReservedSubdomain }) {
  const queries = useQueryClient();
  const reload = () => queries.invalidateQueries(reservedSubdomainsQuery);
  async function reserveAgain(): Promise<void> {
    await call("POST", "/reserved-subdomains", { subdomain });
    await reload();
  }
  async function release(): Promise<void> {
    await call("DELETE", `/reserved-subdomains/${id}`);
    await reload();
    notify(`${subdomain} was released. Other organizations can have it after a day.`, {
      label: "Undo",
      act: () => void reserveAgain().catch(notifyOfError),
    });
  }
  return (
    <ActionButton action={release} aria-label={`Release ${subdomain}`}>
      Release
    </ActionButton>
  );
}
