/** The devices of a network: their state, their configurations, and their removal. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Device, PrivateNetwork } from "../../../../protocol/schemas/networks.ts";
import { networkDevicesQuery } from "../../../api/networks.ts";
import { call } from "../../../api/session.ts";
import { useHasRole } from "../../../app/roles.ts";
import { Button } from "../../../ui/button.tsx";
import { CodeBlock } from "../../../ui/text/code-block.tsx";
import { ConfirmButton, OpenDialog } from "../../../ui/forms/dialog.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { formatBytes } from "../../../ui/numbers.ts";
import { Badge, Detail, Section } from "../../../ui/section.tsx";
import { Table, type Column } from "../../../ui/table.tsx";
import { RelativeTime, useNow } from "../../../ui/time.tsx";
import { getDeviceHealth } from "../network-health.ts";
import { AddDeviceButton } from "./add-device.tsx";
import { deviceConfigQuery } from "./device-config.ts";

export function DevicesSection({ network }: { network: PrivateNetwork }) {
  const devices = useQuery(networkDevicesQuery(network.id));
  const canChange = useHasRole("member");
  const hasServer = network.server_public_key !== null;
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
              {list.some((device) => device.last_handshake_at === null) && hasServer && (
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
  const canChange = useHasRole("member");
  const columns: Column<Device>[] = [
    { title: "Name", render: (device) => <DeviceName device={device} /> },
    { title: "Address", render: ({ assigned_ip: address }) => <code>{address}</code> },
    { title: "State", render: (device) => <DeviceState device={device} /> },
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
      render: (device) => (
        <div className="actions device-actions">
          {network.server_public_key !== null && <ConfigButton network={network} device={device} />}
          {canChange && <RemoveButton network={network} device={device} />}
        </div>
      ),
    },
  ];
  return (
    <div className="device-table">
      <Table
        caption="Devices of the network"
        columns={columns}
        entries={devices}
        getKey={({ id }) => id}
      />
    </div>
  );
}

function DeviceName({ device: { name, endpoint } }: { device: Device }) {
  return (
    <>
      <bdi>{name}</bdi>
      {endpoint !== null && <Detail>from {endpoint}</Detail>}
    </>
  );
}

function DeviceState({ device }: { device: Device }) {
  const { tone, label } = getDeviceHealth(device, useNow());
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

interface DeviceProps {
  network: PrivateNetwork;
  device: Device;
}

function ConfigButton({ network, device }: DeviceProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        kind="quiet"
        aria-label={`Show the configuration of ${device.name}`}
        onClick={() => setOpen(true)}
      >
        Configuration
      </Button>
      <OpenDialog
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        title={`Configuration of ${device.name}`}
        width="wide"
      >
        <p>
          The private key is only on the device, so it can't be shown here. If it is lost, remove
          the device and add it again.
        </p>
        <DeviceConfig network={network} device={device} />
        <div className="actions">
          <Button onClick={() => setOpen(false)}>Close</Button>
        </div>
      </OpenDialog>
    </>
  );
}

function DeviceConfig({ network, device }: DeviceProps) {
  return (
    <QueryContent query={useQuery(deviceConfigQuery(network.id, device.id))} lines={8}>
      {(config) => <CodeBlock label={`Configuration of ${device.name}`}>{config}</CodeBlock>}
    </QueryContent>
  );
}

function RemoveButton({ network, device }: DeviceProps) {
  const queries = useQueryClient();
  return (
    <ConfirmButton
      button={{ kind: "quiet", children: "Remove", "aria-label": `Remove ${device.name}` }}
      title="Remove the device?"
      submit="Remove"
      onSubmit={async () => {
        await call("DELETE", `/private-networks/${network.id}/devices/${device.id}`);
        await queries.invalidateQueries(networkDevicesQuery(network.id));
        notify(`${device.name} was removed.`);
      }}
    >
      <p>
        The WireGuard server refuses <strong>{device.name}</strong> within seconds if its agent runs
        with <code>--apply</code>. Otherwise, run this on the server:
      </p>
      <CodeBlock label="Command that removes the peer">
        {`wg set INTERFACE peer ${device.public_key} remove`}
      </CodeBlock>
    </ConfirmButton>
  );
}
