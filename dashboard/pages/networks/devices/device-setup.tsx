/** How a device gets its configuration: a QR code, a file, and what to do on each system. */
import type { ReactNode } from "react";
import { Button } from "../../../ui/button.tsx";
import { CodeBlock } from "../../../ui/text/code-block.tsx";
import { Command } from "../../../ui/copy.tsx";
import { downloadFile } from "../../../ui/text/download.ts";
import { QrCode } from "../../../ui/figures/qr-code.tsx";
import { Tabs } from "../../../ui/tabs.tsx";
import { toInterfaceName } from "./device-config.ts";

interface DeviceSetupProps {
  networkName: string;
  /** Complete, with the private key. */
  config: string;
}

export function DeviceSetup({ networkName, config }: DeviceSetupProps) {
  const name = toInterfaceName(networkName);
  const file = `${name}.conf`;
  const phone = (store: ReactNode) => (
    <div className="phone-setup">
      <QrCode text={config} label="QR code with the configuration of the device" />
      <ol>
        <li>Install {store}.</li>
        <li>
          Tap <strong>+</strong>, then <strong>Create from QR code</strong>.
        </li>
        <li>Scan this code, give the tunnel a name, and switch it on.</li>
      </ol>
    </div>
  );
  const desktop = (store: ReactNode) => (
    <ol>
      <li>Install {store}.</li>
      <li>
        Download <code>{file}</code> below.
      </li>
      <li>
        Choose <strong>Import tunnels from file</strong>, open <code>{file}</code>, and activate the
        tunnel.
      </li>
    </ol>
  );
  return (
    <>
      <Tabs
        label="System of the device"
        tabs={[
          { id: "ios", title: "iPhone, iPad", content: phone("WireGuard from the App Store") },
          {
            id: "android",
            title: "Android",
            content: phone("WireGuard from Google Play or F-Droid"),
          },
          { id: "macos", title: "macOS", content: desktop("WireGuard from the App Store") },
          {
            id: "windows",
            title: "Windows",
            content: desktop(
              <>
                WireGuard from <code>wireguard.com/install</code>
              </>,
            ),
          },
          { id: "linux", title: "Linux", content: <LinuxSetup name={name} /> },
        ]}
      />
      <details className="config-text">
        <summary>Configuration as text</summary>
        <CodeBlock label="Configuration of the device">{config}</CodeBlock>
      </details>
      <div className="actions">
        <Button onClick={() => downloadFile(file, config)}>Download {file}</Button>
      </div>
    </>
  );
}

function LinuxSetup({ name }: { name: string }) {
  return (
    <>
      <p>
        Install <code>wireguard-tools</code>, download <code>{name}.conf</code> below, and run:
      </p>
      <div className="commands">
        <Command>{`sudo install -m 600 ${name}.conf /etc/wireguard/${name}.conf`}</Command>
        <Command>{`sudo systemctl enable --now wg-quick@${name}`}</Command>
      </div>
    </>
  );
}
