/** The registered WireGuard server of a network. */
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { NetworkConfig, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { networkQuery } from "../../api/networks.ts";
import { call, load } from "../../api/session.ts";
import { useHasRole } from "../../app/roles.ts";
import { Button } from "../../ui/button.tsx";
import { CodeBlock } from "../../ui/text/code-block.tsx";
import { Command } from "../../ui/copy.tsx";
import { Fact, Facts } from "../../ui/facts.tsx";
import { ConfirmButton, OpenDialog } from "../../ui/forms/dialog.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Section } from "../../ui/section.tsx";
import { formatServeCommand } from "./commands.ts";
import { RegisterServerButton } from "./register-server.tsx";
import { getServerAddress } from "./server-address.ts";

const serverConfigQuery = (id: string) =>
  queryOptions({
    queryKey: ["networks", id, "server-config"],
    queryFn: ({ signal }) => load<NetworkConfig>(`/private-networks/${id}/server-config`, signal),
    // It contains all devices, which change at any time.
    staleTime: 0,
  });

export function ServerSection({ network }: { network: PrivateNetwork }) {
  const { server_public_key: key, server_listen_port: port } = network;
  const canChange = useHasRole("member");
  return (
    <Section
      title="Server"
      actions={
        <>
          <ConfigButton network={network} />
          <RegisterServerButton network={network} />
          {canChange && <RemoveServerButton network={network} />}
        </>
      }
    >
      <Facts>
        <Fact name="Public key">
          <code>{key}</code>
        </Fact>
        <Fact name="Address for devices">
          <code>{network.public_endpoint ?? "none"}</code>
        </Fact>
        <Fact name="Address in the network">
          <code>{getServerAddress(network.cidr)}</code>
        </Fact>
        <Fact name="WireGuard listens on">port {port}</Fact>
        {network.relay_id !== null && <Fact name="Relay">{network.relay_id}</Fact>}
      </Facts>
      {canChange && (
        <>
          <p className="section-end">
            The agent on the server carries the traffic, and keeps its WireGuard peers in step with
            the devices:
          </p>
          <Command>{formatServeCommand(network.name)}</Command>
        </>
      )}
    </Section>
  );
}

function ConfigButton({ network }: { network: PrivateNetwork }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Show configuration</Button>
      <OpenDialog
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        title="WireGuard configuration of the server"
        width="wide"
      >
        <ServerConfig networkId={network.id} />
        <div className="actions">
          <Button onClick={() => setOpen(false)}>Close</Button>
        </div>
      </OpenDialog>
    </>
  );
}

function ServerConfig({ networkId }: { networkId: string }) {
  return (
    <>
      <p>
        With <code>--apply</code>, <code>underpass vpn</code> writes this itself. For a server that
        you set up by hand, put its private key in place of <code>&lt;PASTE…&gt;</code>.
      </p>
      <QueryContent query={useQuery(serverConfigQuery(networkId))} lines={10}>
        {({ config }) => <CodeBlock label="Configuration of the server">{config}</CodeBlock>}
      </QueryContent>
    </>
  );
}

function RemoveServerButton({ network: { id, name } }: { network: PrivateNetwork }) {
  const queries = useQueryClient();
  return (
    <ConfirmButton
      button={{ children: "Remove", "aria-label": "Remove the server" }}
      title="Remove the server?"
      submit="Remove the server"
      name={name}
      onSubmit={async () => {
        const changed = await call<PrivateNetwork>("DELETE", `/private-networks/${id}/server`);
        await queries.cancelQueries(networkQuery(id));
        queries.setQueryData(networkQuery(id).queryKey, changed);
        notify("The server was removed.");
      }}
    >
      <p>
        The agent is disconnected, and no device reaches the network until a server is registered
        again. The devices and the port do not change.
      </p>
    </ConfirmButton>
  );
}
