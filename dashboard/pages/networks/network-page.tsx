/** /networks/:id: one private network, with its devices and its server. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { networkQuery, networksQuery } from "../../api/networks.ts";
import { call } from "../../api/session.ts";
import { useHasRole } from "../../app/roles.ts";
import { usePathId } from "../../app/query-parameters.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { ConfirmButton } from "../../ui/forms/dialog.tsx";
import { MissingResource } from "../../ui/feedback/missing-resource.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { quoteForShell } from "../../ui/text/shell.ts";
import { DevicesSection } from "./devices/devices-section.tsx";
import { HealthSection } from "./health-section.tsx";
import { ServerSection } from "./server-section.tsx";
import "./networks.css";

export function Page() {
  const id = usePathId();
  const network = useQuery(networkQuery(id));
  const canChange = useHasRole("member");
  const { data } = network;
  return (
    <PageFrame
      title={data?.name ?? "Network"}
      about={
        data && (
          <>
            Private network with the addresses <code>{data.cidr}</code>
          </>
        )
      }
      actions={data && canChange ? <DeleteButton network={data} /> : undefined}
    >
      <QueryContent
        query={network}
        lines={8}
        missing={
          <MissingResource id={id} kind="network" title="This network does not exist">
            <p>It may have been deleted.</p>
            <Link to="/networks" className="button">
              Show all networks
            </Link>
          </MissingResource>
        }
      >
        {(loaded) => (
          <>
            <HealthSection network={loaded} />
            <DevicesSection network={loaded} />
            {loaded.server_public_key !== null && <ServerSection network={loaded} />}
            <NetworkCommandLine network={loaded} />
          </>
        )}
      </QueryContent>
    </PageFrame>
  );
}

function NetworkCommandLine({ network: { id, name } }: { network: PrivateNetwork }) {
  const network = `vpn ${quoteForShell(name)}`;
  const path = `/private-networks/${id}`;
  return (
    <CommandLine
      commands={[`${network} devices`]}
      changes={[`${network} add phone`, `${network} remove phone`]}
      requests={[
        { label: "Show the network", path },
        { label: "List its devices", path: `${path}/devices` },
      ]}
    />
  );
}

function DeleteButton({ network: { id, name } }: { network: PrivateNetwork }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <ConfirmButton
      button={{ children: "Delete" }}
      title="Delete the network?"
      submit="Delete the network"
      name={name}
      onSubmit={async () => {
        await call("DELETE", `/private-networks/${id}`);
        await navigate({ to: "/networks" });
        queries.removeQueries({ queryKey: networkQuery(id).queryKey });
        await queries.invalidateQueries(networksQuery);
        notify(`${name} was deleted.`);
      }}
    >
      <p>All its devices are removed, and the agent that serves it is disconnected.</p>
    </ConfirmButton>
  );
}
