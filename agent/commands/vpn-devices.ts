/** `underpass vpn <network> add|devices|remove`: the devices of a private network, from the terminal. */
import { styleText } from "node:util";
import { renderUnicodeCompact } from "uqr";
import { escapeControls, escapeControlsInLines } from "../../shared/text/escape-controls.ts";
import type { Device, PrivateNetwork } from "../../protocol/schemas/networks.ts";
import { formatAgo } from "../output/format/format-relative-time.ts";
import { formatBytes } from "../output/format/format-bytes.ts";
import { getTerminalWidth, Table } from "../output/format/table.ts";
import { printError, printJson, printLine } from "../output/output.ts";
import { getOnlyArgument, rejectEmpty, rejectExtraArguments, UsageError } from "../options.ts";
import { requireNewFile, writeNewFile } from "../disk/new-file.ts";
import { SettingsError } from "../settings-error.ts";
import { RejectionError } from "../rejection-error.ts";
import { derivePublicKey, generatePrivateKey } from "../vpn/wireguard/keys.ts";
import { openNetworkApi } from "../vpn/open-network-api.ts";
import { checkConfig, fillPrivateKey } from "../vpn/wireguard/config.ts";
import type { Input } from "./command.ts";
import type { VPN_ADD, VPN_DEVICES, VPN_REMOVE } from "./table/vpn.ts";
import { PROGRAM } from "../program.ts";

/** ISO/IEC 18004 requires four; scanners accept two, and a terminal has few lines. */
const QR_BORDER_MODULES = 2;
/** The light modules are drawn, so the code must be bright on dark, whatever the terminal's own colors are. */
const QR_COLORS: ("whiteBright" | "bgBlack")[] = ["whiteBright", "bgBlack"];

/** Generates a device's keys, adds the device with its public key, and prints the configuration. */
export async function addDevice({
  values,
  positionals,
}: Input<typeof VPN_ADD.options>): Promise<number> {
  const [networkName, name] = getNetworkAndDevice(positionals, "add");
  const api = await openNetworkApi(values);
  const { signal } = new AbortController();
  requireNewFile(values.out, "--out");
  const network = await api.get(networkName, signal);
  if (network.server_public_key === null) {
    const command = `${PROGRAM} vpn ${network.name} --setup`;
    throw new SettingsError(
      `${network.name} has no server yet; on the machine that is to be its server, run: ${command}`,
    );
  }
  const others = (await api.listDevices(network.id, signal)).filter((it) => it.name === name);
  const privateKey = generatePrivateKey();
  const device = await api.addDevice(network.id, name, derivePublicKey(privateKey), signal);
  let config: string;
  try {
    const text = await api.getDeviceConfig(network.id, device.id, signal);
    checkConfig(text, "device", network.cidr);
    config = fillPrivateKey(text, privateKey);
    if (values.out !== undefined) await writeNewFile(values.out, config);
  } catch (error) {
    // Without its private key, which only this process has, the device would be useless.
    await api.removeDevice(network.id, device.id, signal).catch(() => undefined);
    throw error;
  }
  if (others.length > 0 && !values.json) printError(describeNamesakes(others));
  if (values.json)
    printJson({ device, ...(values.out === undefined ? { config } : { out: values.out }) });
  else printConfig(network, device, config, values);
  return 0;
}

function describeNamesakes(devices: readonly Device[]): string {
  const [{ name }] = devices as [Device];
  return `${devices.length === 1 ? "another device is" : "other devices are"} called ${name} too (${formatDevices(devices)}); remove it by its address if it is no longer used`;
}

/** `10.88.0.2, id 0193…` of each device. */
function formatDevices(devices: readonly Device[]): string {
  return devices.map(({ id, assigned_ip }) => `${assigned_ip}, id ${id}`).join("; ");
}

/** Only the configuration goes to standard output, so that it can be redirected into a file. */
function printConfig(
  network: PrivateNetwork,
  device: Device,
  config: string,
  { out, "no-qr": noQr }: Input<typeof VPN_ADD.options>["values"],
): void {
  const isTerminal = process.stdout.isTTY;
  const note = (text: string): void =>
    void process.stderr.write(`${escapeControlsInLines(text)}\n`);
  const shown = isTerminal ? escapeControlsInLines(config) : config;
  if (out === undefined) process.stdout.write(shown.endsWith("\n") ? shown : `${shown}\n`);
  else note(`Wrote ${out}.`);
  if (!noQr) process.stderr.write(`\n${renderQr(config, isTerminal)}\n`);
  const step = noQr
    ? "Import the configuration into the WireGuard app."
    : "Scan the QR code with the WireGuard app.";
  note(
    [
      "",
      `${device.name} has the address ${device.assigned_ip} in ${network.name}.`,
      `${step} The private key is stored nowhere else.`,
      ...describeNextStep(network, device),
    ].join("\n"),
  );
}

/** How the WireGuard server learns of the device. A second agent would replace one that runs. */
function describeNextStep({ name, relay }: PrivateNetwork, device: Device): string[] {
  const command = `  wg set <interface> peer ${device.public_key} allowed-ips ${device.assigned_ip}/32`;
  if (relay.state !== "offline") {
    return [
      "If the network's agent runs with --apply, it adds the device to the WireGuard server within five seconds.",
      "Otherwise, run on the server's machine:",
      command,
    ];
  }
  return [
    "Next, add the device to the WireGuard server. On the server's machine, run:",
    `  ${PROGRAM} vpn ${name} --apply`,
    "Without the agent, run:",
    command,
  ];
}

/** @param isColored sets the colors, so that scanners can read the code on light terminals too. */
export function renderQr(text: string, isColored: boolean): string {
  const code = renderUnicodeCompact(text, { ecc: "L", border: QR_BORDER_MODULES });
  if (!isColored) return code;
  return (
    code
      .split("\n")
      // Without these colors the code may be unreadable: NO_COLOR does not apply.
      .map((line) => styleText(QR_COLORS, line, { validateStream: false }))
      .join("\n")
  );
}

export async function listDevices({
  values,
  positionals,
}: Input<typeof VPN_DEVICES.options>): Promise<number> {
  const networkName = getOnlyArgument(positionals, "the network", `${PROGRAM} vpn office devices`);
  const api = await openNetworkApi(values);
  const { signal } = new AbortController();
  const network = await api.get(networkName, signal);
  const devices = await api.listDevices(network.id, signal);
  if (values.json) {
    devices.forEach(printJson);
    return 0;
  }
  if (devices.length === 0) {
    process.stderr.write(
      `The network has no devices. Add one with: ${PROGRAM} vpn ${escapeControls(network.name)} add phone\n`,
    );
    return 0;
  }
  const rows = devices.map((device) => [
    device.name,
    device.assigned_ip,
    device.last_handshake_at === null
      ? "never"
      : formatAgo(Date.now() - Date.parse(device.last_handshake_at)),
    device.endpoint ?? "-",
    formatBytes(device.rx_bytes),
    formatBytes(device.tx_bytes),
    device.id,
  ]);
  const headers = ["DEVICE", "ADDRESS", "HANDSHAKE", "FROM"].map((header) => ({ header }));
  const sizes = ["RECEIVED", "SENT"].map((header) => ({ header, isNumeric: true }));
  const id = { header: "ID", isCutLast: true, omissionOrder: 1 };
  const table = new Table([...headers, ...sizes, id], getTerminalWidth());
  table.format(rows).forEach(printLine);
  return 0;
}

export async function removeDevice({
  values,
  positionals,
}: Input<typeof VPN_REMOVE.options>): Promise<number> {
  const [networkName, given] = getNetworkAndDevice(positionals, "remove");
  const api = await openNetworkApi(values);
  const { signal } = new AbortController();
  const network = await api.get(networkName, signal);
  const devices = await api.listDevices(network.id, signal);
  const found = devices.filter(({ id, name, assigned_ip }) =>
    [id, name, assigned_ip].includes(given),
  );
  const [device, ...others] = found;
  if (!device) {
    const names = devices.map(({ name }) => name).join(", ");
    const known = names === "" ? "it has none" : `its devices: ${names}`;
    throw new RejectionError(
      "not_found",
      `${network.name} has no device called ${given}; ${known}`,
    );
  }
  if (others.length > 0) {
    throw new UsageError(
      `${found.length} devices are called ${given}; name one by its address or id: ${formatDevices(found)}`,
    );
  }
  await api.removeDevice(network.id, device.id, signal);
  if (values.json) {
    printJson({ device });
    return 0;
  }
  printLine(`Removed ${device.name} (${device.assigned_ip}).`);
  printLine(
    "The WireGuard server accepts the device until its peer is removed. An agent with --apply removes the peer; otherwise run:",
  );
  printLine(`  wg set <interface> peer ${device.public_key} remove`);
  return 0;
}

function getNetworkAndDevice(positionals: string[], action: string): [string, string] {
  const [network, device, ...extra] = positionals;
  const example = `for example: ${PROGRAM} vpn ${network ?? "office"} ${action} phone`;
  if (network === undefined || device === undefined) {
    throw new UsageError(`the device is missing; ${example}`);
  }
  rejectEmpty(network, "the network");
  rejectEmpty(device, "the device");
  rejectExtraArguments(extra);
  return [network, device];
}
