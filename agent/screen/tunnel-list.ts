/** The tunnels on the screen: what their events report about each, and which one the keys are for. */
import { SERVICE_VERSION } from "../../protocol/version.ts";
import { compareVersions } from "../compare-versions.ts";
import { describeStop } from "../output/connection-events.ts";
import { describeMaintenance, type TunnelGates } from "../gates/tunnel-gates.ts";
import { nameKeys } from "../config/option-keys.ts";
import { formatRejection } from "../output/output.ts";
import type { RejectionError } from "../rejection-error.ts";
import { LatencyHistory } from "./latency-history.ts";
import { escapeControls } from "../../shared/text/escape-controls.ts";
import type { TunnelView } from "./tunnel-lines.ts";

/** How often it is checked whether the local servers listen. */
const ORIGIN_CHECK_MS = 2_000;

interface ShownWelcome {
  name: string;
  /** null for a private TCP tunnel. */
  url: string | null;
  /** The server's version; the events of TCP tunnels do not have it. */
  server?: string;
  expiresAt?: string | undefined;
}

/** The events that tunnels of all protocols have. */
interface ShownTunnel {
  /** Whether it is a TCP tunnel without a public port. */
  isPrivate?: boolean;
  on(event: "ready" | "reconnected", listener: (welcome: ShownWelcome) => void): unknown;
  on(event: "disconnected", listener: (reason: string) => void): unknown;
  on(event: "stopped", listener: (reason: string, name: string | undefined) => void): unknown;
  on(event: "retrying", listener: (reason: string, inMs: number) => void): unknown;
  on(event: "latency", listener: (ms: number) => void): unknown;
  on(event: "gates", listener: (gates: TunnelGates) => void): unknown;
}

/** The events that only HTTP tunnels have. */
interface MaintenanceSource {
  on(event: "maintenance", listener: (isOn: boolean, tunnelId: string) => void): unknown;
}

/** The server that a tunnel leads to. */
interface LocalServer {
  /** @returns why it accepts no connections now; null when it does. */
  findConnectProblem(): Promise<string | null>;
  /** Whether the server notices the connections of the check. */
  isCheckVisible: boolean;
}

export class TunnelList {
  readonly views: TunnelView[] = [];
  selected: TunnelView | undefined;
  /** The version of a server that is newer than this agent. */
  newVersion: string | undefined;
  readonly #draw: () => void;
  readonly #checks = new Map<TunnelView, NodeJS.Timeout>();

  constructor(draw: () => void) {
    this.#draw = draw;
  }

  /** @param local the local server, as it is printed. */
  add(tunnel: ShownTunnel, local: string, name: string): TunnelView {
    const view: TunnelView = {
      name,
      local,
      url: undefined,
      connection: "connecting",
      latencyMs: undefined,
      jitterMs: undefined,
      reconnects: 0,
      gates: undefined,
      refused: 0,
      expiresAt: undefined,
      warnings: [],
    };
    this.views.push(view);
    this.selected ??= view;
    this.#watchConnection(tunnel, view);
    this.#draw();
    return view;
  }

  /** Shows a warning as long as the tunnel's local server does not listen. */
  watchLocalServer(server: LocalServer, view: TunnelView): void {
    let warning: string | null = null;
    const check = async (): Promise<void> => {
      const problem = await server.findConnectProblem();
      // A TCP server may treat each connection as a client, and log it.
      if (problem === null && server.isCheckVisible) clearInterval(this.#checks.get(view));
      if (problem === warning) return;
      if (warning !== null) removeFrom(view.warnings, warning);
      if (problem !== null) view.warnings.push(problem);
      warning = problem;
      this.#draw();
    };
    this.#checks.set(
      view,
      setInterval(() => void check(), ORIGIN_CHECK_MS),
    );
    void check();
  }

  /** Shows a warning as long as visitors get the maintenance page. */
  watchMaintenance(tunnel: MaintenanceSource, view: TunnelView): void {
    let warning = "";
    tunnel.on("maintenance", (isOn, tunnelId) => {
      removeFrom(view.warnings, warning);
      warning = describeMaintenance(tunnelId);
      if (isOn) view.warnings.push(warning);
      this.#draw();
    });
  }

  find(name: string): TunnelView | undefined {
    return this.views.find((view) => view.name === name);
  }

  remove(name: string): void {
    const view = this.find(name);
    if (!view) return;
    clearInterval(this.#checks.get(view));
    this.#checks.delete(view);
    removeFrom(this.views, view);
    if (this.selected === view) this.selected = this.views[0];
    this.#draw();
  }

  /** The tunnel is going to be removed when its requests in flight have finished. */
  showClosing(name: string): void {
    const view = this.find(name);
    if (view) view.connection = "closing";
    this.#draw();
  }

  /** The server has rejected one of several tunnels. */
  showRejection(name: string, rejection: RejectionError): void {
    const view = this.find(name);
    if (!view) return;
    view.connection = "rejected";
    view.warnings = [escapeControls(nameKeys(formatRejection(rejection)).replaceAll("\n", ". "))];
    this.#draw();
  }

  /** Shows the tunnels in the order of their names in `names`. */
  sort(names: readonly string[]): void {
    this.views.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
    this.#draw();
  }

  /** Selects the next tunnel (1), or the one before (-1); after the last one follows the first. */
  select(by: 1 | -1): void {
    const at = this.selected ? this.views.indexOf(this.selected) : -1;
    this.selected = this.views.at((at + by) % this.views.length);
  }

  end(): void {
    for (const check of this.#checks.values()) clearInterval(check);
  }

  #compareVersion(server: string | undefined): void {
    if (server === undefined) return;
    const isNewer = compareVersions(server, SERVICE_VERSION) > 0;
    this.newVersion = isNewer ? escapeControls(server) : undefined;
  }

  #watchConnection(tunnel: ShownTunnel, view: TunnelView): void {
    let problem: string | undefined;
    const show = (connection: TunnelView["connection"], message?: string): void => {
      view.connection = connection;
      if (problem !== undefined) removeFrom(view.warnings, problem);
      problem = message === undefined ? undefined : escapeControls(message);
      if (problem !== undefined) view.warnings.push(problem);
      this.#draw();
    };
    const latency = new LatencyHistory();
    const showWelcome = ({ name, url, server, expiresAt }: ShownWelcome): void => {
      if (url === null) view.privateName = escapeControls(name);
      else view.url = escapeControls(url);
      view.expiresAt = expiresAt;
      this.#compareVersion(server);
    };
    tunnel.on("ready", (welcome) => {
      showWelcome(welcome);
      show("online");
    });
    tunnel.on("reconnected", (welcome) => {
      showWelcome(welcome);
      latency.clear();
      view.reconnects += 1;
      show("online");
    });
    tunnel.on("disconnected", (reason) => show("reconnecting", reason));
    tunnel.on("retrying", (reason) => show("reconnecting", reason));
    tunnel.on("stopped", (reason, name) => show("stopped", describeStop(reason, name)));
    tunnel.on("gates", (gates) => {
      view.gates = gates;
      this.#draw();
    });
    tunnel.on("latency", (ms) => {
      latency.add(ms);
      view.latencyMs = ms;
      view.jitterMs = latency.jitterMs;
      this.#draw();
    });
  }
}

function removeFrom<Item>(items: Item[], item: Item): void {
  const at = items.indexOf(item);
  if (at >= 0) items.splice(at, 1);
}
