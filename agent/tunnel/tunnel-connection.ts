/**
 * The agent's connection to its tunnel, which reconnects whenever it is lost. Only a rejection that no retry can change
 * ends it. Each kind of tunnel brings its own streams.
 */
import { EventEmitter } from "node:events";
import { CLOSE, findCloseName, shouldReconnect } from "../../protocol/wire/close-codes.ts";
import type {
  AgentHealth,
  GateName,
  Hello,
  StatusUpdate,
  Welcome,
} from "../../protocol/wire/frames.ts";
import { parseCloseReason, type ParsedCloseReason } from "../../protocol/wire/close-reason.ts";
import { explainServerVersion } from "../../protocol/wire/version-mismatch.ts";
import { DRAIN_TIMEOUT_MS } from "../../protocol/limits.ts";
import type { TunnelGates } from "../gates/tunnel-gates.ts";
import type { ServerAccess } from "../server-access.ts";
import { getRefusedDelayMs, getRetryDelayMs } from "../back-off.ts";
import { describeClose } from "../error-message.ts";
import { RejectionError } from "../rejection-error.ts";
import { toWebSocketUrl } from "../websocket.ts";
import { toQuery, TUNNEL_QUERY_OPTIONS, type TunnelSettings } from "./tunnel-options.ts";
import { Wire, type StreamOpener } from "./wire.ts";

/**
 * How long an agent that stops waits until the tunnel knows it: so that no visitor waits for it, and others of a pool
 * serve.
 */
const LEAVE_MAX_MS = 2_000;
const DRAIN_CHECK_MS = 20;

export interface ConnectionOptions extends ServerAccess {
  settings: TunnelSettings;
  /** Further query parameters of the connect request. */
  query: Record<string, string>;
  /** Query parameters of the first connect request only. */
  firstQuery?: Record<string, string>;
  /** Headers of the first connect request only. */
  firstHeaders?: Record<string, string>;
  /** Without these capabilities of the server the tunnel must not be served. */
  requires?: readonly Requirement[];
  /** The agent serves the tunnel together with others. */
  getPool?: (() => Hello["pool"]) | undefined;
  /** The gates that the first connect request sets. */
  ownGates: readonly GateName[];
  /** These two are sent in the agent's hello. */
  capabilities: string[];
  /** The local server, as it is printed. */
  local: string;
  openStream: StreamOpener;
}

interface Requirement {
  capability: string;
  /** Why, for the user. */
  message: string;
}

export interface ConnectionEventMap {
  ready: [welcome: Welcome];
  reconnected: [welcome: Welcome];
  disconnected: [reason: string];
  /** A connection could not be opened; another attempt follows. */
  retrying: [reason: string, inMs: number];
  /** The tunnel's owner stopped it: the agent waits until it is started again. */
  stopped: [explanation: string, name: string | undefined];
  rejected: [rejection: RejectionError];
  /** How long the latest heartbeat took to the server and back, in milliseconds. */
  latency: [ms: number];
  /** The gates have changed since the last such event, or since the start, when there were none. */
  gates: [gates: TunnelGates];
  /** Visitors get the maintenance page, or no longer: when that has changed since the last such event, or since the start. */
  maintenance: [isOn: boolean, tunnelId: string];
  /** How many objects the tunnel's visitors are spread over: after each welcome, and when it changes. */
  shards: [count: number];
  /** This many visits were refused by the gates, the rate limit or maintenance since the last such event. */
  refused: [visits: number];
  /** How many agents serve the tunnel as a pool, this one included. */
  pool: [agents: number];
}

export class TunnelConnection extends EventEmitter<ConnectionEventMap> {
  readonly #options: ConnectionOptions;
  #state: "connecting" | "online" | "stopped" | "closed" = "connecting";
  #wire: Wire | undefined;
  /** The connection that the server asked to end, while its last requests finish. */
  #drainingWire: Wire | undefined;
  #welcome: Welcome | undefined;
  /** The gates that were last reported. */
  #gates: readonly string[] = [];
  /** As last reported. */
  #isInMaintenance = false;
  /** No further request is on its way to this agent, which goes away. */
  #isDrained = false;
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: ConnectionOptions) {
    super();
    this.#options = options;
  }

  /** The latest welcome of the server; undefined before the first connection. */
  get welcome(): Welcome | undefined {
    return this.#welcome;
  }

  /** How many streams are open that `close` waits for. */
  get openRequests(): number {
    return this.#wire?.drainableStreams ?? 0;
  }

  start(): void {
    this.#connect();
  }

  /** Ends the connection cleanly: streams in flight may finish, for up to `DRAIN_TIMEOUT_MS`. */
  async close(): Promise<void> {
    if (this.#state === "closed") return;
    this.#state = "closed";
    clearTimeout(this.#retry);
    const wire = this.#wire;
    if (!wire) return;
    const reason = "the agent was stopped";
    if (this.#options.getPool) await this.#leavePool(wire, reason);
    await drain(wire);
    if (!this.#options.getPool) wire.sendGoingAway(reason);
    wire.close(reason);
    // The process may end next, which would reset a connection that still receives, and lose what the tunnel has not read.
    await waitUntil(() => this.#wire !== wire, LEAVE_MAX_MS);
  }

  /** Tells the tunnel whether the local server accepts connections. */
  sendHealth(health: AgentHealth): void {
    this.#wire?.sendHealth(health);
  }

  /** Resolves when the other agents get all further requests. */
  async #leavePool(wire: Wire, reason: string): Promise<void> {
    wire.sendGoingAway(reason);
    await waitUntil(() => this.#isDrained || this.#wire !== wire, LEAVE_MAX_MS);
  }

  #connect(): void {
    const url = buildConnectUrl(this.#options, this.#welcome);
    const { token, authorities, capabilities, local, getPool, openStream, firstHeaders } =
      this.#options;
    const headers = (this.#welcome ? undefined : firstHeaders) ?? {};
    const wire = new Wire(
      { url, headers, token, authorities, capabilities, local, getPool },
      {
        onWelcome: (welcome) => this.#handleWelcome(welcome),
        onOtherVersion: (version) => this.#refuseServer(explainServerVersion(version)),
        openStream: (from, id, opening) =>
          from === this.#wire && from !== this.#drainingWire ? openStream(from, id, opening) : null,
        onGoingAway: () => this.#handleGoingAway(),
        onStatus: (status) => this.#handleStatus(status),
        onLatency: (ms) => this.emit("latency", ms),
        onClose: (code, reason) => this.#handleClose(wire, code, reason),
      },
    );
    this.#wire = wire;
  }

  #handleWelcome(welcome: Welcome): void {
    const { requires = [] } = this.#options;
    const missing = requires.find((it) => !welcome.capabilities.includes(it.capability));
    if (missing) return this.#refuseServer({ message: missing.message });
    const isFirst = this.#welcome === undefined;
    this.#welcome = welcome;
    this.#failures = 0;
    // While it closes, the connection still has to be drained.
    if (this.#state !== "closed") this.#state = "online";
    // It may have changed since the hello.
    const pool = this.#options.getPool?.();
    if (pool) this.sendHealth({ healthy: pool.healthy });
    this.emit(isFirst ? "ready" : "reconnected", welcome);
    this.#handleStatus({ shards: 1, maintenance: false, ...welcome });
  }

  #handleStatus({ gates, maintenance, refused, shards, agents, drained }: StatusUpdate): void {
    if (!this.#welcome) return;
    const { tunnelId } = this.#welcome;
    if (gates !== undefined && gates.join() !== this.#gates.join()) {
      this.#gates = gates;
      const { ownGates: ownNames, query } = this.#options;
      const isTcp = query["protocol"] === "tcp";
      this.emit("gates", { tunnelId, names: gates, ownNames, isTcp });
    }
    if (maintenance !== undefined && maintenance !== this.#isInMaintenance) {
      this.#isInMaintenance = maintenance;
      this.emit("maintenance", maintenance, tunnelId);
    }
    if (refused !== undefined) this.emit("refused", refused);
    if (shards !== undefined) this.emit("shards", shards);
    if (agents !== undefined) this.emit("pool", agents);
    if (drained) this.#isDrained = true;
  }

  /** Ends the connection to a server that this agent can't work with. */
  #refuseServer({ message, subcode }: ParsedCloseReason): void {
    const wire = this.#wire;
    // From now on the wire refuses its streams: those in the message of the welcome too.
    this.#wire = undefined;
    wire?.close("the versions are incompatible");
    this.#reject(CLOSE.unsupported_version, { message, subcode });
  }

  /** The server restarts. Requests in flight finish on the old connection, which is closed afterwards. */
  #handleGoingAway(): void {
    const wire = this.#wire;
    if (!wire || this.#state === "closed") return;
    this.#drainingWire = wire;
    void drain(wire).then(() => wire.close("the server is restarting"));
  }

  #handleClose(wire: Wire, code: number, reason: string): void {
    if (wire !== this.#wire) return;
    this.#wire = undefined;
    this.#drainingWire = undefined;
    if (this.#state === "closed") return;
    const parsed = parseCloseReason(code, reason);
    if (!shouldReconnect(code)) return this.#reject(code, parsed);
    if (code === CLOSE.tunnel_stopped) return this.#waitForStart(parsed.message);
    const explanation = reason === "" ? describeClose(code) : reason;
    if (this.#state === "online") this.emit("disconnected", explanation);
    this.#state = "connecting";
    const inMs = wire.isConnectionRefused
      ? getRefusedDelayMs(this.#failures)
      : getRetryDelayMs(code, this.#failures);
    this.#failures += 1;
    if (this.#failures > 1) this.emit("retrying", explanation, inMs);
    this.#retry = setTimeout(() => this.#connect(), inMs);
  }

  /** Emits `stopped` once, however often the agent checks. */
  #waitForStart(explanation: string): void {
    if (this.#state !== "stopped") {
      const name = this.#welcome?.name ?? this.#options.settings.subdomain;
      this.emit("stopped", explanation, name);
    }
    this.#state = "stopped";
    this.#failures = 0;
    this.#retry = setTimeout(() => this.#connect(), getRetryDelayMs(CLOSE.tunnel_stopped, 0));
  }

  #reject(code: number, { message, subcode }: ParsedCloseReason): void {
    this.#state = "closed";
    const name = findCloseName(code) ?? String(code);
    const { renewal, server } = this.#options;
    const details = { renewal, subcode, server: server.origin };
    const explanation = message || describeClose(code);
    this.emit("rejected", new RejectionError(name, explanation, details));
  }
}

function drain(wire: Wire): Promise<void> {
  return waitUntil(() => wire.drainableStreams === 0, DRAIN_TIMEOUT_MS);
}

/** Resolves when `isDone` returns true, and at the latest after `maxMs`. */
async function waitUntil(isDone: () => boolean, maxMs: number): Promise<void> {
  const endsAtMs = performance.now() + maxMs;
  while (!isDone() && performance.now() < endsAtMs) {
    await new Promise((resolve) => setTimeout(resolve, DRAIN_CHECK_MS));
  }
}

/** A reconnecting agent names its tunnel by id too: one that has expired or was deleted must not be created again. */
function buildConnectUrl(options: ConnectionOptions, welcome: Welcome | undefined): URL {
  const url = toWebSocketUrl("/agent/connect", options.server);
  const query = {
    ...options.query,
    ...toQuery(TUNNEL_QUERY_OPTIONS, options.settings),
    ...(welcome ? { subdomain: welcome.name, tunnel: welcome.tunnelId } : options.firstQuery),
  };
  for (const [parameter, value] of Object.entries(query)) url.searchParams.set(parameter, value);
  return url;
}
