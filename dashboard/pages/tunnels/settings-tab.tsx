/** The tab with the properties that can't change after the tunnel was created, and with its deletion. */
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { call } from "../../api/session.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { Fact, Facts } from "../../ui/facts.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { ConfirmButton } from "../../ui/forms/dialog.tsx";
import { Section } from "../../ui/section.tsx";
import { ExactTime, RelativeTime } from "../../ui/time.tsx";
import { PROTOCOL_NAMES } from "./protocol-names.ts";

export function SettingsTab({ tunnel }: { tunnel: Tunnel }) {
  const { id, subdomain, projectSlug, protocol, publicPort, createdAt } = tunnel;
  const canChange = useHasRole("member");
  return (
    <>
      <Section title="Properties">
        <Facts>
          <Fact name="Subdomain">{subdomain}</Fact>
          <Fact name="Project">
            <Link to="/tunnels" search={{ project: projectSlug }}>
              {projectSlug}
            </Link>
          </Fact>
          <Fact name="Protocol">{PROTOCOL_NAMES[protocol]}</Fact>
          {publicPort !== null && <Fact name="Public port">{publicPort}</Fact>}
          <Fact name="Created">
            <ExactTime timestamp={createdAt} />
          </Fact>
          <Fact name="Lifetime">
            <Lifetime tunnel={tunnel} />
          </Fact>
          <Fact name="ID" isWide>
            <span className="public-address">
              <code>{id}</code>
              <CopyButton text={id} label="Copy the ID" kind="quiet" />
            </span>
          </Fact>
        </Facts>
        <p className="hint properties-note">
          These are chosen when a tunnel is created. To change them, create another tunnel.
        </p>
      </Section>
      {canChange && <DeleteSection tunnel={tunnel} />}
      <CommandLine
        commands={[`tunnels show ${subdomain}`]}
        changes={[`tunnels delete ${subdomain}`]}
        requests={[{ label: "Delete the tunnel", method: "DELETE", path: `/tunnels/${id}` }]}
      />
    </>
  );
}

function Lifetime({ tunnel: { expiresAt } }: { tunnel: Tunnel }) {
  if (expiresAt === null) return "until it is deleted";
  return (
    <>
      until <ExactTime timestamp={expiresAt} /> (<RelativeTime timestamp={expiresAt} />)
    </>
  );
}

function DeleteSection({ tunnel }: { tunnel: Tunnel }) {
  const { id, name } = tunnel;
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <Section
      title="Delete this tunnel"
      actions={
        <ConfirmButton
          button={{ children: "Delete the tunnel" }}
          title={`Delete ${name}?`}
          submit="Delete"
          name={name}
          onSubmit={async () => {
            await call("DELETE", `/tunnels/${id}`);
            await navigate({ to: "/tunnels" });
            await queries.invalidateQueries(tunnelsQuery);
            notify(`${name} was deleted.`);
          }}
        >
          <p>
            Its agent is disconnected, and its settings and captured requests are deleted. This
            can't be undone.
          </p>
        </ConfirmButton>
      }
    >
      <p className="hint">
        Other organizations can use its name after a day. To close it for a while, stop it instead.
      </p>
    </Section>
  );
}
