/** The actions on a device: show its configuration, and remove it. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Device, PrivateNetwork } from "../../../../protocol/schemas/networks.ts";
import { networkDevicesQuery } from "../../../api/networks.ts";
import { call } from "../../../api/session.ts";
import { useHasRole } from "../../../app/roles.ts";
import { Button } from "../../../ui/button.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { OpenConfirmDialog, OpenDialog } from "../../../ui/forms/dialog.tsx";
import { ActionsMenu, MenuItem } from "../../../ui/menu.tsx";
import { CodeBlock } from "../../../ui/text/code-block.tsx";
import { deviceConfigQuery } from "./device-config.ts";

interface DeviceProps {
  network: PrivateNetwork;
  device: Device;
}

export function DeviceMenu({ network, device }: DeviceProps) {
  const [shown, setShown] = useState<"configuration" | "removal" | null>(null);
  const canChange = useHasRole("member");
  const hasConfiguration = network.server_public_key !== null;
  if (!hasConfiguration && !canChange) return null;
  const props = { network, device, onClose: () => setShown(null) };
  return (
    <>
      <ActionsMenu name={device.name}>
        {hasConfiguration && (
          <MenuItem onClick={() => setShown("configuration")}>Show the configuration…</MenuItem>
        )}
        {canChange && <MenuItem onClick={() => setShown("removal")}>Remove…</MenuItem>}
      </ActionsMenu>
      <ConfigurationDialog {...props} isOpen={shown === "configuration"} />
      <RemovalDialog {...props} isOpen={shown === "removal"} />
    </>
  );
}

interface DialogProps extends DeviceProps {
  isOpen: boolean;
  onClose: () => void;
}

function ConfigurationDialog({ network, device, isOpen, onClose }: DialogProps) {
  return (
    <OpenDialog
      isOpen={isOpen}
      onClose={onClose}
      title={`Configuration of ${device.name}`}
      width="wide"
    >
      <p>
        The private key is only on the device, so it can't be shown here. If it is lost, remove the
        device and add it again.
      </p>
      <DeviceConfig network={network} device={device} />
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </OpenDialog>
  );
}

function DeviceConfig({ network, device }: DeviceProps) {
  return (
    <QueryContent query={useQuery(deviceConfigQuery(network.id, device.id))} lines={8}>
      {(config) => <CodeBlock label={`Configuration of ${device.name}`}>{config}</CodeBlock>}
    </QueryContent>
  );
}

function RemovalDialog({ network, device, ...dialog }: DialogProps) {
  const queries = useQueryClient();
  return (
    <OpenConfirmDialog
      {...dialog}
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
    </OpenConfirmDialog>
  );
}
