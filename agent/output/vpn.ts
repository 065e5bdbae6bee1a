/** What `underpass vpn` prints: JSON for programs, lines for logs, a picture for a person at a terminal. */
import type { Device } from "../../protocol/schemas/networks.ts";
import { formatPath } from "../vpn/path-line.ts";
import type { NetworkStatus } from "../vpn/network-agent.ts";
import type { VpnSession } from "../vpn/session.ts";
import type { Rejected } from "../tunnel.ts";
import { formatAgo } from "./format-ago.ts";
import { printJson } from "./json-lines.ts";
import { bold, dim, green, harmless, Picture, red, yellow } from "./picture.ts";

export interface VpnOutput {
  /** What the set-up did, a line at a time, before anything else. */
  setup(line: string): void;
  /** Shows a session from now on. */
  show(session: VpnSession): void;
  /** What the person reads last. */
  end(rejection?: Rejected): void;
}

const DEVICES_SHOWN = 12;
const REDRAW_MS = 1_000;

const ADVICE: Record<string, string> = {
  not_found: "Make it with: underpass vpn <network> --setup --cidr 10.88.0.0/24",
  server_not_registered: "This machine becomes its server with: underpass vpn <network> --setup",
  replaced: "A newer agent serves this network now.",
  network_deleted: "Somebody deleted the network.",
  unauthorized: "Get a new token with `underpass login`.",
  forbidden: "A token that is confined to names, or of a viewer, may not serve networks.",
};

export class VpnJson implements VpnOutput {
  setup(line: string): void {
    printJson({ event: "setup", message: line.trim() });
  }

  show(session: VpnSession): void {
    const { agent } = session;
    agent.on("ready", ({ network, endpoint, local }) =>
      printJson({ event: "ready", networkId: network.id, endpoint, local }),
    );
    agent.on("status", (status, previous) => {
      if (isSameState(status, previous)) return;
      const { transport, latencyMs, isLocalListening } = status;
      printJson({ event: "path", transport, latencyMs: toTenths(latencyMs), isLocalListening });
      const message = listeningNote(session, status, previous);
      if (message !== null) printJson({ event: "notice", message });
    });
    session.on("device", (device, publicKey, endpoint) => {
      const { id, name } = device ?? {};
      printJson({ event: "device", id, name, publicKey, endpoint });
    });
    agent.on("disconnected", (reason) => printJson({ event: "disconnected", reason }));
    agent.on("retrying", (reason, inMs) =>
      printJson({ event: "retrying", reason, inMs: Math.round(inMs) }),
    );
    agent.on("reconnected", () => printJson({ event: "reconnected" }));
    session.on("notice", (message) => printJson({ event: "notice", message }));
  }

  end(rejection?: Rejected): void {
    if (!rejection) return;
    printJson({ event: "rejected", reason: rejection.reason, message: rejection.message });
  }
}

export class VpnLines implements VpnOutput {
  setup(line: string): void {
    print(line);
  }

  show(session: VpnSession): void {
    const { agent } = session;
    agent.on("ready", ({ network, endpoint, local }) =>
      print(`Serving ${harmless(network.name)} (${network.cidr}): ${endpoint} -> ${local}`),
    );
    agent.on("status", (status, previous) => {
      if (isSameState(status, previous)) return;
      if (status.transport !== previous?.transport) {
        const latency = status.latencyMs === null ? "" : `, ${Math.round(status.latencyMs)} ms`;
        print(`datagrams go over ${status.transport}${latency}`);
      }
      const note = listeningNote(session, status, previous);
      if (note !== null) print(note);
    });
    session.on("device", (device, publicKey, endpoint) =>
      print(`${nameDevice(device, publicKey)} speaks from ${harmless(endpoint)}`),
    );
    agent.on("disconnected", (reason) => print(`disconnected: ${harmless(reason)}; reconnecting`));
    agent.on("retrying", (reason, inMs) =>
      print(`no connection: ${harmless(reason)}; next try in ${(inMs / 1000).toFixed(1)} s`),
    );
    agent.on("reconnected", () => print("reconnected"));
    session.on("notice", (message) => print(harmless(message)));
  }

  end(rejection?: Rejected): void {
    if (rejection) process.stderr.write(`underpass: ${rejectionText(rejection)}\n`);
  }
}

export class VpnScreen implements VpnOutput {
  readonly #setup: string[] = [];
  #picture: Picture | undefined;
  #timer: NodeJS.Timeout | undefined;
  #state = yellow("connecting");
  #serving = "…";
  #note = "";

  setup(line: string): void {
    this.#setup.push(line);
    // What is shown until the picture comes; it repeats these lines.
    print(line);
  }

  show(session: VpnSession): void {
    const { agent } = session;
    const picture = new Picture(() => this.#lines(session));
    this.#picture = picture;
    const state = (text: string): void => {
      this.#state = text;
      picture.draw();
    };
    agent.on("ready", ({ network, endpoint, local }) => {
      this.#serving = `${bold(harmless(network.name))} ${network.cidr}   ${endpoint} -> ${local}`;
      state(green("online"));
    });
    agent.on("reconnected", () => state(green("online")));
    agent.on("disconnected", (reason) => state(yellow(`reconnecting (${harmless(reason)})`)));
    agent.on("retrying", (reason) => state(yellow(`reconnecting (${harmless(reason)})`)));
    agent.on("status", () => picture.draw());
    agent.on("handshake", () => picture.draw());
    session.on("devices", () => picture.draw());
    session.on("notice", (message) => {
      this.#note = message;
      picture.draw();
    });
    // How long ago a handshake was changes by itself.
    this.#timer = setInterval(() => picture.draw(), REDRAW_MS);
    picture.draw();
  }

  end(rejection?: Rejected): void {
    clearInterval(this.#timer);
    const text = rejection ? red(rejectionText(rejection)) : "Stopped.";
    if (this.#picture) this.#picture.end(text);
    else print(text);
  }

  #lines(session: VpnSession): string[] {
    const { agent, devices } = session;
    const now = Date.now();
    const { status } = agent;
    const port = agent.network?.server_listen_port;
    return [
      bold("underpass vpn") + dim("   Ctrl+C stops it"),
      "",
      `State    ${this.#state}`,
      `Network  ${this.#serving}`,
      `Path     ${formatPath(session, now)}`,
      ...(status.isLocalListening
        ? []
        : [`Local    ${yellow(`nothing listens on ${port}; start the WireGuard server`)}`]),
      ...(this.#note === "" ? [] : [`Note     ${yellow(harmless(this.#note))}`]),
      "",
      ...devices.slice(0, DEVICES_SHOWN).map(({ name, assigned_ip, public_key }) => {
        const atMs = agent.devices.handshakeAtMs(public_key);
        const when =
          atMs === undefined ? dim("no handshake yet") : `handshake ${formatAgo(now - atMs)}`;
        return `  ${harmless(name).padEnd(20)} ${assigned_ip.padEnd(16)} ${when}`;
      }),
      ...(devices.length > DEVICES_SHOWN
        ? [dim(`  and ${devices.length - DEVICES_SHOWN} more`)]
        : []),
      ...(this.#setup.length === 0 ? [] : ["", ...this.#setup]),
    ];
  }
}

export function rejectionText({ reason, message }: Rejected): string {
  const advice = ADVICE[reason];
  return `${reason}: ${message}${advice === undefined ? "" : `\n${advice}`}`;
}

function listeningNote(
  session: VpnSession,
  status: NetworkStatus,
  previous: NetworkStatus | undefined,
): string | null {
  if (status.isLocalListening === (previous?.isLocalListening ?? true)) return null;
  const port = session.agent.network?.server_listen_port;
  return status.isLocalListening
    ? `the WireGuard server listens on ${port}`
    : `nothing listens on ${port}; start the WireGuard server (wg-quick up)`;
}

function nameDevice(device: Device | undefined, publicKey: string): string {
  return device ? harmless(device.name) : `a device that is not enrolled (${publicKey})`;
}

function isSameState(status: NetworkStatus, previous: NetworkStatus | undefined): boolean {
  return (
    status.transport === previous?.transport &&
    status.isLocalListening === previous.isLocalListening
  );
}

function toTenths(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
