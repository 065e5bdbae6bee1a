/** Adds a device: the browser generates its keys, and shows the configuration once. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type {
  Device,
  DeviceEnrollment,
  PrivateNetwork,
} from "../../../../protocol/schemas/networks.ts";
import { networkDevicesQuery } from "../../../api/networks.ts";
import { call } from "../../../api/session.ts";
import { Button } from "../../../ui/button.tsx";
import { CodeBlock } from "../../../ui/text/code-block.tsx";
import { Command } from "../../../ui/copy.tsx";
import { OpenDialog } from "../../../ui/forms/dialog.tsx";
import { TextField } from "../../../ui/forms/fields.tsx";
import { Form } from "../../../ui/forms/form.tsx";
import { Badge } from "../../../ui/section.tsx";
import { formatAddDeviceCommand } from "../commands.ts";
import { getServerAddress } from "../server-address.ts";
import { insertPrivateKey, loadDeviceConfig } from "./device-config.ts";
import { generateKeyPair, type KeyPair } from "./device-keys.ts";
import { DeviceSetup } from "./device-setup.tsx";

interface AddedDevice {
  device: Device;
  config: string;
  /** Whether the configuration contains a private key that the page made. */
  isComplete: boolean;
}

type State = { phase: "closed" } | { phase: "naming" } | ({ phase: "added" } & AddedDevice);

export function AddDeviceButton({ network }: { network: PrivateNetwork }) {
  const [state, setState] = useState<State>({ phase: "closed" });
  // The page forgets the private key when the dialog closes.
  const close = () => setState({ phase: "closed" });
  return (
    <>
      <Button kind="primary" onClick={() => setState({ phase: "naming" })}>
        Add a device
      </Button>
      <OpenDialog
        isOpen={state.phase === "naming"}
        onClose={close}
        title={`Add a device to ${network.name}`}
      >
        <NewDeviceForm
          network={network}
          onAdded={(added) => setState({ phase: "added", ...added })}
          onCancel={close}
        />
      </OpenDialog>
      <OpenDialog
        isOpen={state.phase === "added"}
        onClose={close}
        title={state.phase === "added" ? `Set up ${state.device.name}` : ""}
        width="wide"
        isShownOnce
      >
        {state.phase === "added" && (
          <AddedDeviceContent network={network} added={state} onClose={close} />
        )}
      </OpenDialog>
    </>
  );
}

interface NewDeviceFormProps {
  network: PrivateNetwork;
  onAdded: (added: AddedDevice) => void;
  onCancel: () => void;
}

function NewDeviceForm({ network, onAdded, onCancel }: NewDeviceFormProps) {
  const queries = useQueryClient();
  /**
   * undefined: being generated. null: the browser can't generate keys. All attempts send the same public key, so that a
   * repeated one does not add a second device.
   */
  const [keys, setKeys] = useState<KeyPair | null>();
  useEffect(() => void generateKeyPair().then(setKeys), []);

  async function add(name: string, ownKey: string): Promise<void> {
    const pair = ownKey === "" ? (keys ?? null) : null;
    const body = { name, public_key: pair?.publicKey ?? ownKey };
    const path = `/private-networks/${network.id}/devices`;
    const { device } = await call<DeviceEnrollment>("POST", path, body);
    const config = await loadDeviceConfig(network.id, device.id);
    await queries.invalidateQueries(networkDevicesQuery(network.id));
    onAdded({
      device,
      config: pair === null ? config : insertPrivateKey(config, pair.privateKey),
      isComplete: pair !== null,
    });
  }
  return (
    <Form
      submit="Add"
      beside={<Button onClick={onCancel}>Cancel</Button>}
      onSubmit={(value) => add(value("name"), value("public_key").trim())}
    >
      <TextField name="name" label="Name" placeholder="phone" autoComplete="off" />
      <TextField
        name="public_key"
        label={keys === null ? "Public key of the device" : "Public key of the device (optional)"}
        required={keys === null}
        autoComplete="off"
        spellCheck={false}
        hint={
          keys === null ? (
            <>
              This browser can't generate keys on this page. Generate them on the device with the
              WireGuard app or <code>wg genkey</code>, or run the command below.
            </>
          ) : (
            "If it is empty, this browser generates the keys. The private key is never sent to the server."
          )
        }
      />
      {keys === null && <Command>{formatAddDeviceCommand(network.name)}</Command>}
    </Form>
  );
}

interface AddedDeviceProps {
  network: PrivateNetwork;
  added: AddedDevice;
  onClose: () => void;
}

function AddedDeviceContent({ network, added, onClose }: AddedDeviceProps) {
  const { device, config, isComplete } = added;
  return (
    <>
      {isComplete ? (
        <>
          <p>
            This configuration contains the private key of the device, which only this page has.{" "}
            <strong>It will not be shown again.</strong>
          </p>
          <DeviceSetup networkName={network.name} config={config} />
        </>
      ) : (
        <>
          <p>
            Put the private key of the device in place of <code>&lt;PASTE…&gt;</code>.
          </p>
          <CodeBlock label="Configuration of the device">{config}</CodeBlock>
        </>
      )}
      <FirstHandshake network={network} device={device} />
      <div className="actions dialog-end">
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </>
  );
}

/** Whether the device has connected. It changes as soon as the relay has seen a handshake of the device. */
function FirstHandshake({ network, device }: { network: PrivateNetwork; device: Device }) {
  const { data = [] } = useQuery(networkDevicesQuery(network.id));
  const isConnected = data.some(({ id, last_handshake_at: at }) => id === device.id && at !== null);
  return (
    <p role="status" aria-live="polite">
      <Badge tone={isConnected ? "good" : "neutral"}>
        {isConnected ? "connected" : "waiting for the first handshake"}
      </Badge>
      {isConnected ? (
        `${device.name} has reached the server.`
      ) : (
        <>
          Then test it on the device: <code>ping {getServerAddress(network.cidr)}</code>
        </>
      )}
    </p>
  );
}
