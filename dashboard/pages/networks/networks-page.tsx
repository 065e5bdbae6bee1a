/** /networks: the private networks of the organization. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Device, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { networkDevicesQuery, networksQuery } from "../../api/networks.ts";
import { useHasRole } from "../../app/roles.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { useIsOnScreen } from "../../ui/layout/on-screen.ts";
import { formatCount } from "../../ui/numbers.ts";
import { PageFrame } from "../../ui/page.tsx";
import { Badge } from "../../ui/section.tsx";
import { TablePage, type Column } from "../../ui/table.tsx";
import { RelativeTime, useNow } from "../../ui/time.tsx";
import { formatServeCommand, getSetupCommandsOfRoot } from "./commands.ts";
import { getNetworkHealth, isConnected } from "./network-health.ts";
import { NewNetworkButton } from "./new-network.tsx";
import "./networks.css";

/** Each network on the screen costs a request, so the list sends them less often than the page of one network. */
const DEVICE_COUNT_RELOAD_MS = 15_000;

const COLUMNS: Column<PrivateNetwork>[] = [
  {
    title: "Name",
    render: ({ id, name }) => (
      <Link to="/networks/$id" params={{ id }}>
        <bdi>{name}</bdi>
      </Link>
    ),
  },
  { title: "Addresses", isSecondary: true, render: ({ cidr }) => <code>{cidr}</code> },
  { title: "State", render: (network) => <NetworkBadge network={network} /> },
  {
    title: "Devices",
    align: "end",
    isSecondary: true,
    render: ({ id }) => <DeviceCount networkId={id} />,
  },
  {
    title: "Last seen",
    isSecondary: true,
    render: ({ relay }) =>
      relay.last_seen_at === null ? "never" : <RelativeTime timestamp={relay.last_seen_at} />,
  },
];

export function Page() {
  const networks = useQuery(networksQuery);
  const canChange = useHasRole("member");
  return (
    <PageFrame
      title="Networks"
      about="WireGuard networks that connect phones and laptops to a place without a public address."
      actions={canChange ? <NewNetworkButton networks={networks.data ?? []} /> : undefined}
    >
      <TablePage
        caption="Private networks"
        columns={COLUMNS}
        query={networks}
        getKey={({ id }) => id}
        empty={<NoNetworks />}
      />
      <CommandLine
        requests={[
          { label: "List the networks", path: "/private-networks" },
          {
            label: "Create one",
            method: "POST",
            path: "/private-networks",
            body: { name: "office", cidr: "10.88.0.0/24" },
          },
        ]}
      />
    </PageFrame>
  );
}

function NoNetworks() {
  if (!useHasRole("member")) return <EmptyState title="No private networks yet" />;
  return (
    <EmptyState
      title="Connect your first private network"
      commands={[...getSetupCommandsOfRoot(), formatServeCommand("office", "10.88.0.0/24")]}
    >
      <p>
        Run these on a Linux machine with WireGuard in the office or at home. It needs no public
        address and no open port.
      </p>
    </EmptyState>
  );
}

function NetworkBadge({ network }: { network: PrivateNetwork }) {
  const { tone, label } = getNetworkHealth(network);
  return <Badge tone={tone}>{label}</Badge>;
}

function DeviceCount({ networkId }: { networkId: string }) {
  const nowMs = useNow();
  const [cell, isOnScreen] = useIsOnScreen<HTMLSpanElement>();
  const { data } = useQuery({
    ...networkDevicesQuery(networkId),
    refetchInterval: DEVICE_COUNT_RELOAD_MS,
    enabled: isOnScreen,
  });
  return <span ref={cell}>{data === undefined ? "…" : formatDeviceCount(data, nowMs)}</span>;
}

function formatDeviceCount(devices: readonly Device[], nowMs: number): string {
  const connected = devices.filter((device) => isConnected(device, nowMs)).length;
  const all = formatCount(devices.length);
  return connected === 0 ? all : `${all} (${formatCount(connected)} connected)`;
}
