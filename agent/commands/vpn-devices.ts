/** `underpass vpn <network> add|devices|remove`: the devices of a private network, from the terminal. */
import { writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { renderUnicodeCompact } from "uqr";
import type { Device, PrivateNetwork } from "../../protocol/schemas/networks.ts";
import { formatAgo } from "../output/format-ago.ts";
import { printJson } from "../output/output.ts";
import { stripControl } from "../output/terminal-view.ts";
import { SettingsError } from "../settings.ts";
import { RejectionError } from "../tunnel-connection.ts";
import { derivePublicKey, generatePrivateKey } from "../vpn/wireguard/keys.ts";
import type { NetworkApi } from "../vpn/network-api.ts";
import { checkConfig, fillPrivateKey } from "../vpn/wireguard/config.ts";

interface Values {
  json: boolean;
  out: string | undefined;
  "no-qr": boolean;
}

/** ISO/IEC 18004 asks for four; scanners do with two, and a terminal has few lines. */
const QR_BORDER_MODULES = 2;
/** Light modules are drawn: bright white on black, whatever the terminal's own colours are. */
const QR_COLORS = "\u001b[97;40m";
const RESET_COLORS = "\u001b[0m";

/** Makes a device's keys here, enrols the public one, and shows the configuration. */
export async function addDevice(
  api: NetworkApi,
  networkName: string,
  name: string,
  values: Values,
): Promise<number> {
  const { signal } = new AbortController();
  if (values.out !== undefined && existsSync(values.out)) {
    throw new SettingsError(`${values.out} exists already; name another file with --out`);
  }
  const network = await api.get(networkName, signal);
  if (network.server_public_key === null) {
    const command = `underpass vpn ${network.name} --setup`;
    throw new SettingsError(
      `${network.name} has no server yet; on the machine that it runs on: ${command}`,
    );
  }
  const privateKey = generatePrivateKey();
  const device = await api.enroll(network.id, name, derivePublicKey(privateKey), signal);
  let config: string;
  try {
    const text = await api.deviceConfig(network.id, device.id, signal);
    checkConfig(text);
    config = fillPrivateKey(text, privateKey);
    if (values.out !== undefined) await writeFile(values.out, config, { mode: 0o600, flag: "wx" });
  } catch (error) {
    // Its private key is lost with this process: nothing could ever use it.
    await api.removeDevice(network.id, device.id, signal).catch(() => undefined);
    throw error;
  }
  if (values.json) printJson({ device, config });
  else showConfig(network, device, config, values);
  return 0;
}

/** Standard output has the configuration alone, so that it can be redirected into a file. */
function showConfig(
  network: PrivateNetwork,
  device: Device,
  config: string,
  { out, "no-qr": noQr }: Values,
): void {
  const isTerminal = process.stdout.isTTY;
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  if (out === undefined) process.stdout.write(config.endsWith("\n") ? config : `${config}\n`);
  else say(`Wrote ${out}`);
  if (!noQr) say(`\n${renderQr(config, isTerminal)}`);
  say(
    [
      "",
      `${stripControl(device.name)} has the address ${device.assigned_ip} in ${stripControl(network.name)}.`,
      "The private key is shown only now. The WireGuard app reads the QR code.",
      "The WireGuard server lets it in once it knows the device: on its machine run",
      `  underpass vpn ${stripControl(network.name)} --apply`,
      "or, by hand,",
      `  wg set <interface> peer ${device.public_key} allowed-ips ${device.assigned_ip}/32`,
    ].join("\n"),
  );
}

/** @param isColored whether colours make it readable on light terminals too. */
export function renderQr(text: string, isColored: boolean): string {
  const code = renderUnicodeCompact(text, { ecc: "L", border: QR_BORDER_MODULES });
  if (!isColored) return code;
  return code
    .split("\n")
    .map((line) => `${QR_COLORS}${line}${RESET_COLORS}`)
    .join("\n");
}

export async function listDevices(
  api: NetworkApi,
  networkName: string,
  { json }: Values,
): Promise<number> {
  const { signal } = new AbortController();
  const network = await api.get(networkName, signal);
  const devices = await api.devices(network.id, signal);
  if (json) {
    printJson(devices);
    return 0;
  }
  const rows = devices.map((device) => [
    stripControl(device.name),
    device.assigned_ip,
    device.last_handshake_at === null
      ? "never"
      : formatAgo(Date.now() - Date.parse(device.last_handshake_at)),
    stripControl(device.endpoint ?? "-"),
    formatBytes(device.rx_bytes),
    formatBytes(device.tx_bytes),
  ]);
  const header = ["DEVICE", "ADDRESS", "HANDSHAKE", "FROM", "RECEIVED", "SENT"];
  process.stdout.write(`${formatTable([header, ...rows])}\n`);
  return 0;
}

/** @param nameOrId of the device. */
export async function removeDevice(
  api: NetworkApi,
  networkName: string,
  nameOrId: string,
  { json }: Values,
): Promise<number> {
  const { signal } = new AbortController();
  const network = await api.get(networkName, signal);
  const devices = await api.devices(network.id, signal);
  const found = devices.filter(({ id, name }) => id === nameOrId || name === nameOrId);
  const [device, ...others] = found;
  if (!device) {
    const names = devices.map(({ name }) => name).join(", ");
    const known = names === "" ? "there is none" : `there are: ${names}`;
    throw new RejectionError("not_found", `${network.name} has no device ${nameOrId}; ${known}`);
  }
  if (others.length > 0) {
    const ids = found.map(({ id }) => id).join(", ");
    throw new SettingsError(`${found.length} devices are called ${nameOrId}; say which: ${ids}`);
  }
  await api.removeDevice(network.id, device.id, signal);
  if (json) {
    printJson({ device });
    return 0;
  }
  process.stdout.write(
    [
      `Removed ${stripControl(device.name)} (${device.assigned_ip}).`,
      "The WireGuard server still knows it until that is applied: an agent with --apply does so by itself, or",
      `  wg set <interface> peer ${device.public_key} remove`,
      "",
    ].join("\n"),
  );
  return 0;
}

function formatTable(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Decimal units, as interfaces count. */
function formatBytes(bytes: number | null): string {
  if (bytes === null) return "-";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
