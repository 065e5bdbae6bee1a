/** The output of `underpass vpn`: JSON for programs, lines for logs, a live view for a person at a terminal. */
import type { Device } from "../../protocol/schemas/networks.ts";
import { formatStatusLine } from "./vpn-status-line.ts";
import type { NetworkStatus } from "../vpn/network-agent.ts";
import type { VpnSession } from "../vpn/session.ts";
import type { RejectionError } from "../rejection-error.ts";
import {
  printConnectionJson,
  printConnectionLines,
  showConnectionState,
} from "./connection-events.ts";
import { formatAgo } from "./format/format-relative-time.ts";
import {
  createLinePrinter,
  printRejectionJson,
  printRejectionLines,
  formatRejection,
  GENERAL_ADVICE,
  printEvent,
  printColoredLine,
  printLine,
  type Advice,
  type Level,
  type Output,
} from "./output.ts";
import { TerminalView } from "./terminal-view.ts";
import { bold, dim, red, yellow } from "./format/colors.ts";
import { escapeControls, escapeControlsInLines } from "../../shared/text/escape-controls.ts";
import { NETWORK_TOKEN_ADVICE } from "../vpn/network-api.ts";
import { PROGRAM } from "../program.ts";

export interface VpnOutput extends Output {
  /** Prints one line about the setup, before a session is shown. @param level default: info. Only lines have debug output. */
  printSetupLine(line: string, level?: Level): void;
  /** Prints a session's events from now on. */
  attach(session: VpnSession): void;
}

const DEVICES_SHOWN = 12;
const REDRAW_MS = 1_000;

const ADVICE: Advice = {
  ...GENERAL_ADVICE,
  not_found: `Create the network with: ${PROGRAM} vpn <network> --setup --cidr 10.88.0.0/24`,
  server_not_registered: `Make this machine the network's server with: ${PROGRAM} vpn <network> --setup`,
  replaced: "A newer agent serves this network now.",
  network_deleted: `Create a new network with: ${PROGRAM} vpn <network> --setup --cidr 10.88.0.0/24`,
  forbidden: NETWORK_TOKEN_ADVICE,
};

export class VpnJson implements VpnOutput {
  printSetupLine(line: string, level: Level = "info"): void {
    if (level === "debug") return;
    printEvent({ event: "setup", message: line.trim() });
  }

  attach(session: VpnSession): void {
    const { agent } = session;
    agent.on("ready", ({ network, endpoint, local }) =>
      printEvent({ event: "ready", networkId: network.id, endpoint, local }),
    );
    agent.on("status", (status, previous) => {
      if (isSameState(status, previous)) return;
      const { transport, latencyMs, isLocalListening } = status;
      printEvent({
        event: "path",
        transport,
        latencyMs: roundToTenths(latencyMs),
        isLocalListening,
      });
      const message = formatListeningChange(session, status, previous);
      if (message !== null) printEvent({ event: "notice", message });
    });
    session.on("device", (device, publicKey, endpoint) => {
      const { id, name } = device ?? {};
      printEvent({ event: "device", id, name, publicKey, endpoint });
    });
    printConnectionJson(agent);
    session.on("notice", (message) => printEvent({ event: "notice", message }));
  }

  end(rejection?: RejectionError): void {
    printRejectionJson(rejection);
  }
}

export class VpnLines implements VpnOutput {
  readonly #print: (level: Level, text: string) => void;

  constructor(level: Level) {
    this.#print = createLinePrinter(level);
  }

  printSetupLine(line: string, level: Level = "info"): void {
    this.#print(level, line);
  }

  attach(session: VpnSession): void {
    const { agent } = session;
    const print = this.#print;
    agent.on("ready", ({ network, endpoint, local }) =>
      print("error", `Serving ${network.name} (${network.cidr}): ${endpoint} -> ${local}`),
    );
    agent.on("status", (status, previous) => {
      if (isSameState(status, previous)) return;
      if (status.transport !== previous?.transport) {
        const latency = status.latencyMs === null ? "" : `, ${Math.round(status.latencyMs)} ms`;
        print("info", `sending datagrams over ${status.transport}${latency}`);
      }
      const note = formatListeningChange(session, status, previous);
      if (note !== null) print(status.isLocalListening ? "info" : "warn", note);
    });
    session.on("device", (device, publicKey, endpoint) =>
      print("info", `${formatDevice(device, publicKey)} connected from ${endpoint}`),
    );
    printConnectionLines(agent, print);
    agent.on("reconnected", () => print("info", "reconnected"));
    session.on("notice", (message) => print("warn", message));
  }

  end(rejection?: RejectionError): void {
    printRejectionLines(rejection, ADVICE);
  }
}

export class VpnScreen implements VpnOutput {
  readonly #setup: string[] = [];
  #view: TerminalView | undefined;
  #timer: NodeJS.Timeout | undefined;
  #state = yellow("connecting");
  #serving = "…";
  #note = "";

  printSetupLine(line: string, level: Level = "info"): void {
    if (level === "debug") return;
    this.#setup.push(line);
    // Visible until the live view is drawn, which repeats these lines.
    printLine(line);
  }

  attach(session: VpnSession): void {
    const { agent } = session;
    const view = new TerminalView(() => this.#lines(session));
    this.#view = view;
    agent.on("ready", ({ network, endpoint, local }) => {
      const rest = escapeControls(`${network.cidr}   ${endpoint} -> ${local}`);
      this.#serving = `${bold(escapeControls(network.name))} ${rest}`;
    });
    showConnectionState(agent, (state) => {
      this.#state = state;
      view.draw();
    });
    agent.on("status", () => view.draw());
    agent.on("handshake", () => view.draw());
    session.on("devices", () => view.draw());
    session.on("notice", (message) => {
      this.#note = message;
      view.draw();
    });
    // How long ago a handshake was changes by itself.
    this.#timer = setInterval(() => view.draw(), REDRAW_MS);
    view.draw();
  }

  end(rejection?: RejectionError): void {
    clearInterval(this.#timer);
    const text = rejection
      ? red(escapeControlsInLines(formatRejection(rejection, ADVICE)))
      : "Stopped.";
    if (this.#view) this.#view.end(text);
    else printColoredLine(text);
  }

  #lines(session: VpnSession): string[] {
    const { agent, devices } = session;
    const now = Date.now();
    const { status } = agent;
    const port = agent.network?.server_listen_port;
    return [
      bold("underpass vpn") + dim("   q quits"),
      "",
      `State    ${this.#state}`,
      `Network  ${this.#serving}`,
      `Path     ${escapeControls(formatStatusLine(session, now))}`,
      ...(status.isLocalListening
        ? []
        : [
            `Local    ${yellow(`nothing is listening on port ${port}; start the WireGuard server`)}`,
          ]),
      ...(this.#note === "" ? [] : [`Note     ${yellow(escapeControls(this.#note))}`]),
      "",
      ...devices.slice(0, DEVICES_SHOWN).map(({ name, assigned_ip, public_key }) => {
        const atMs = agent.devices.findHandshakeAtMs(public_key);
        const when =
          atMs === undefined ? dim("no handshake yet") : `handshake ${formatAgo(now - atMs)}`;
        const device = escapeControls(`${name.padEnd(20)} ${assigned_ip.padEnd(16)}`);
        return `  ${device} ${when}`;
      }),
      ...(devices.length > DEVICES_SHOWN
        ? [dim(`  and ${devices.length - DEVICES_SHOWN} more`)]
        : []),
      ...(this.#setup.length === 0 ? [] : ["", ...this.#setup.map(escapeControls)]),
    ];
  }
}

function formatListeningChange(
  session: VpnSession,
  status: NetworkStatus,
  previous: NetworkStatus | undefined,
): string | null {
  if (status.isLocalListening === (previous?.isLocalListening ?? true)) return null;
  const port = session.agent.network?.server_listen_port;
  return status.isLocalListening
    ? `the WireGuard server listens on port ${port}`
    : `nothing is listening on port ${port}; start the WireGuard server (wg-quick up)`;
}

function formatDevice(device: Device | undefined, publicKey: string): string {
  return device ? device.name : `a device that is not in the network's list (${publicKey})`;
}

function isSameState(status: NetworkStatus, previous: NetworkStatus | undefined): boolean {
  return (
    status.transport === previous?.transport &&
    status.isLocalListening === previous.isLocalListening
  );
}

function roundToTenths(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}
