/** The devices of a network and their state. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Device, PrivateNetwork } from "../../../../protocol/schemas/networks.ts";
import { networkDevicesQuery } from "../../../api/networks.ts";
import { useHasRole } from "../../../app/roles.ts";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { formatBytes } from "../../../ui/numbers.ts";
import { Badge, Detail, Section } from "../../../ui/section.tsx";
import { ShowMore } from "../../../ui/show-more.tsx";
import { Table, type Column } from "../../../ui/table.tsx";
import { RelativeTime, useNow } from "../../../ui/time.tsx";
import { getDeviceHealth, isReachedDirectly } from "../network-health.ts";
import { AddDeviceButton } from "./add-device.tsx";
import { DeviceMenu } from "./device-menu.tsx";

/** How many devices are shown at first, and added by each click. */
const PAGE_ROWS = 50;

export function DevicesSection({ network }: { network: PrivateNetwork }) {
  const devices = useQuery(networkDevicesQuery(network.id));
  const canChange = useHasRole("member");
  const hasServer = network.server_public_key !== null;
  const canSeeHandshakes = hasServer && !isReachedDirectly(network);
  return (
    <Section
      title="Devices"
      actions={hasServer && canChange ? <AddDeviceButton network={network} /> : undefined}
    >
      <QueryContent query={devices}>
        {(list) =>
          list.length === 0 ? (
            <p>
              {hasServer
                ? "There are no devices yet."
                : "There are no devices yet. Their configuration contains the key of the server, so set up the server first."}
            </p>
          ) : (
            <>
              <DeviceTable network={network} devices={list} />
              {canSeeHandshakes && list.some((device) => device.last_handshake_at === null) && (
                <NoHandshakeHelp />
              )}
            </>
          )
        }
      </QueryContent>
    </Section>
  );
}

interface DeviceTableProps {
  network: PrivateNetwork;
  devices: readonly Device[];
}

function DeviceTable({ network, devices }: DeviceTableProps) {
  const [maxRows, setMaxRows] = useState(PAGE_ROWS);
  const columns: Column<Device>[] = [
    { title: "Name", render: (device) => <DeviceName device={device} /> },
    { title: "State", render: (device) => <DeviceState network={network} device={device} /> },
    {
      title: "Sent",
      align: "end",
      isSecondary: true,
      render: ({ rx_bytes: bytes }) => formatKnownBytes(bytes),
    },
    {
      title: "Received",
      align: "end",
      isSecondary: true,
      render: ({ tx_bytes: bytes }) => formatKnownBytes(bytes),
    },
    {
      title: "Actions",
      isTitleHidden: true,
      align: "end",
      render: (device) => <DeviceMenu network={network} device={device} />,
    },
  ];
  return (
    <div className="device-table">
      <Table
        caption="Devices of the network"
        columns={columns}
        entries={devices.slice(0, maxRows)}
        getKey={({ id }) => id}
      />
      <ShowMore
        hiddenCount={devices.length - maxRows}
        step={PAGE_ROWS}
        onShow={() => setMaxRows(maxRows + PAGE_ROWS)}
      />
    </div>
  );
}

function DeviceName({ device }: { device: Device }) {
  const { name, assigned_ip: address, endpoint } = device;
  return (
    <>
      <bdi>{name}</bdi>
      <Detail>
        <code>{address}</code>
      </Detail>
      {endpoint !== null && <Detail>from {endpoint}</Detail>}
    </>
  );
}

function DeviceState({ network, device }: { network: PrivateNetwork; device: Device }) {
  const { tone, label } = getDeviceHealth(network, device, useNow());
  const { last_handshake_at: at } = device;
  return (
    <>
      <Badge tone={tone}>{label}</Badge>
      {at !== null && (
        <Detail>
          handshake <RelativeTime timestamp={at} />
        </Detail>
      )}
    </>
  );
}

function formatKnownBytes(bytes: number | null): string {
  return bytes === null ? "–" : formatBytes(bytes);
}

/** Closed at first: a missing handshake is not always a problem, because a device sends none until its app is switched on. */
function NoHandshakeHelp() {
  return (
    <details className="help">
      <summary>What to check when a device has no handshake</summary>
      <ol>
        <li>The tunnel is switched on in the WireGuard app of the device.</li>
        <li>
          The server knows the device: <code>wg show</code> lists its public key. With{" "}
          <code>--apply</code>, the agent adds it within five seconds.
        </li>
        <li>
          The network of the device allows outgoing UDP. Some hotels block it: try a mobile network.
        </li>
        <li>The configuration is newer than the server's key. If not, add the device again.</li>
      </ol>
    </details>
  );
}
