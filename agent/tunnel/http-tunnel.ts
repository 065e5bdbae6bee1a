/** The agent's side of an HTTP tunnel: forwards the requests of its connection to the local server. */
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import {
  AGENT_GATES_HEADER,
  AGENT_GATES_MAX_CHARS,
  formatAgentGates,
  hasGates,
  type AgentGates,
} from "../../protocol/schemas/tunnels/agent-gates.ts";
import {
  CLOSE_CAPABILITY,
  GATES_CAPABILITY,
  REQUEST_IDS_CAPABILITY,
  POOL_CAPABILITY,
  type Hello,
  type Welcome,
} from "../../protocol/wire/frames.ts";
import { StoredRequests, type StorageProblem } from "../origin/stored-requests.ts";
import { openStream } from "../origin/open-stream.ts";
import { startReplay, type Replay } from "../origin/replay.ts";
import type { RequestReport } from "../library/types.ts";
import { describeListening } from "../local-server/restart-wait.ts";
import { OriginServer } from "../origin/origin-server.ts";
import type { PublicUrl } from "../gates/options.ts";
import { UsageError } from "../options.ts";
import type { OriginOptions } from "../origin/origin-options.ts";
import type { Target } from "../origin/target.ts";
import type { ServerAccess } from "../server-access.ts";
import type { TunnelSettings } from "./tunnel-options.ts";
import { describeTtlLimit } from "./ttl-limit.ts";
import { PoolHealth } from "./pool-health.ts";
import { ShardConnections } from "./shard-connections.ts";
import {
  TunnelConnection,
  type ConnectionEventMap,
  type ConnectionOptions,
} from "./tunnel-connection.ts";
import type { RejectionError } from "../rejection-error.ts";

export interface HttpTunnelOptions extends ServerAccess {
  target: Target;
  originOptions?: OriginOptions;
  settings: TunnelSettings;
  /** With a name below the service's domain, or a custom domain. Default: by the settings. */
  publicUrl?: PublicUrl | undefined;
  /** Set before the first visitor is served. */
  gates?: AgentGates;
  /** Serve the tunnel together with other agents that have the same token. */
  pool?: boolean;
}

interface HttpTunnelEventMap extends ConnectionEventMap {
  request: [request: RequestReport];
  /** A WebSocket was accepted, or an event stream began. */
  streamOpened: [request: RequestReport];
  streamClosed: [request: RequestReport];
  notice: [message: string];
  /** A local server that accepted connections refuses them now, or accepts them again. The message is for the user. */
  localServer: [isListening: boolean, message: string];
  /** The function that answers requests threw, or its response's body failed. Without a listener it is printed. */
  handlerError: [error: unknown];
  /** The tunnel has ended: it was closed, or the server rejected it permanently, with this rejection. */
  closed: [rejection: RejectionError | undefined];
}

/** `busy`: all connections to the local server are in use. */
export type ReplayProblem = StorageProblem | "websocket" | "busy";

const GATES_REQUIREMENT = {
  capability: GATES_CAPABILITY,
  message: "the server is too old to set a tunnel's URL, password and policy; update the server",
};

const POOL_REQUIREMENT = {
  capability: POOL_CAPABILITY,
  message: "the server is too old for several agents of one tunnel; update the server",
};

export class HttpTunnel extends EventEmitter<HttpTunnelEventMap> {
  readonly #origin: OriginServer;
  readonly #connection: TunnelConnection;
  readonly #shards: ShardConnections;
  /** undefined: the agent serves alone. */
  readonly #health: PoolHealth | undefined;
  readonly server: URL;
  /** Where `--inspect` listens; undefined when it is off. */
  inspectUrl: string | undefined;
  #isEnded = false;
  #closing: Promise<void> | undefined;

  constructor(options: HttpTunnelOptions) {
    super();
    const { target, publicUrl, gates = {}, originOptions = {} } = options;
    const host = publicUrl?.host;
    this.server = options.server;
    this.#origin = new OriginServer(target, originOptions, {
      onRequestFinished: (request) => this.#report("request", request),
      onStreamOpened: (request) => this.#report("streamOpened", request),
      onStreamClosed: (request) => this.#report("streamClosed", request),
      onUnreachable: () => this.#health?.reportUnreachable(),
      onListeningChanged: (isListening) =>
        this.#report("localServer", isListening, describeListening(isListening, target.origin)),
      onNotice: (message) => this.#report("notice", message),
      onLocalError: (error) => {
        if (!this.#report("handlerError", error)) console.error(error);
      },
    });
    if (options.pool) {
      this.#health = this.#watchHealth();
      // Another agent serves the visitors at once.
      this.#origin.endWaits();
    }
    const connection: ConnectionOptions = {
      ...options,
      query: {
        protocol: target.scheme,
        port: String(target.port),
        ...(host !== undefined && { host }),
      },
      ...(hasGates(gates) && { firstHeaders: { [AGENT_GATES_HEADER]: formatGates(gates) } }),
      requires: [
        ...(hasGates(gates) || host !== undefined ? [GATES_REQUIREMENT] : []),
        ...(this.#health ? [POOL_REQUIREMENT] : []),
      ],
      getPool: this.#health && toHelloPool(this.#health),
      ownGates: [
        ...(gates.basicAuth !== undefined ? ["password" as const] : []),
        ...(gates.policy !== undefined ? ["token" as const, "policy" as const] : []),
      ],
      capabilities: ["websocket", CLOSE_CAPABILITY, REQUEST_IDS_CAPABILITY],
      local: target.origin,
      openStream: (wire, id, opening) =>
        opening.type === "request" ? openStream(this.#origin, wire, id, opening) : null,
    };
    this.#connection = new TunnelConnection(connection);
    this.#shards = new ShardConnections(connection, (visits) => this.#report("refused", visits));
    this.#forwardEvents(publicUrl);
  }

  get origin(): OriginServer {
    return this.#origin;
  }

  /** The latest welcome of the server; undefined before the first connection. */
  get welcome(): Welcome | undefined {
    return this.#connection.welcome;
  }

  /** How many requests of visitors are open, without WebSockets: those that `close` waits for. */
  get openRequests(): number {
    return this.#connection.openRequests + this.#shards.openRequests;
  }

  start(): void {
    if (this.#health) void this.#startInPool(this.#health);
    else this.#connection.start();
  }

  /** From now on requests are stored in memory, and can be replayed. */
  storeRequests(): void {
    this.#origin.storedRequests ??= new StoredRequests();
  }

  /**
   * Sends a request to the local server again. It is reported like a visitor's, and the service learns nothing of it.
   * @returns why that is not possible, unless it has begun.
   */
  replay(report: RequestReport): Replay | ReplayProblem {
    if (report.kind === "websocket") return "websocket";
    if (this.#origin.isFull) return "busy";
    const stored = this.#origin.storedRequests?.find(report) ?? "forgotten";
    return typeof stored === "string" ? stored : startReplay(this.#origin, stored);
  }

  /** Ends the tunnel cleanly: requests in flight may finish, for up to `DRAIN_TIMEOUT_MS`. */
  close(): Promise<void> {
    this.#health?.stop();
    this.#origin.endWaits();
    // A second call waits for the same requests.
    this.#closing ??= Promise.all([this.#connection.close(), this.#shards.close()]).then(() =>
      this.#end(),
    );
    return this.#closing;
  }

  #watchHealth(): PoolHealth {
    return new PoolHealth(
      async () => (await this.#origin.findConnectProblem()) === null,
      (healthy) => {
        this.#connection.sendHealth({ healthy });
        this.#shards.sendHealth({ healthy });
      },
    );
  }

  /** The tunnel learns from the first message whether it may send requests. */
  async #startInPool(health: PoolHealth): Promise<void> {
    await health.start();
    if (this.#closing === undefined) this.#connection.start();
  }

  /** Emits `closed` once, however often and for what reason the tunnel is ended. */
  async #end(rejection?: RejectionError): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#health?.stop();
    await this.#origin.close();
    this.#report("closed", rejection);
  }

  /**
   * Emits an event. An exception in a listener becomes an uncaught exception, and does not affect the request or the
   * connection that the event is about.
   * @returns whether there is a listener.
   */
  #report<Name extends keyof HttpTunnelEventMap>(
    name: Name,
    ...args: HttpTunnelEventMap[Name]
  ): boolean {
    try {
      return (this as EventEmitter).emit(name, ...args);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
      return true;
    }
  }

  #forwardEvents(publicUrl: PublicUrl | undefined): void {
    const connection = this.#connection;
    const setPublicOrigin = ({ url }: Welcome): void => {
      this.#origin.publicOrigin = new URL(url).origin;
    };
    let announcedUrl: string;
    connection.on("ready", setPublicOrigin);
    connection.on("reconnected", setPublicOrigin);
    connection.on("ready", (welcome) => {
      announcedUrl = welcome.url;
      this.#report("ready", welcome);
      const notices = [
        this.#origin.target.warning,
        findSchemeWarning(publicUrl, welcome.url),
        describeTtlLimit(welcome),
      ];
      for (const notice of notices) if (notice !== undefined) this.#report("notice", notice);
    });
    connection.on("reconnected", (welcome) => {
      this.#report("reconnected", welcome);
      // Its domain was unbound, or the operator has changed how public URLs are written.
      if (welcome.url !== announcedUrl)
        this.#report("notice", `visitors now connect to ${welcome.url}`);
      announcedUrl = welcome.url;
    });
    connection.on("disconnected", (reason) => this.#report("disconnected", reason));
    connection.on("retrying", (reason, inMs) => this.#report("retrying", reason, inMs));
    connection.on("latency", (ms) => this.#report("latency", ms));
    connection.on("gates", (gates) => this.#report("gates", gates));
    connection.on("maintenance", (isOn, id) => this.#report("maintenance", isOn, id));
    connection.on("refused", (visits) => this.#report("refused", visits));
    connection.on("pool", (agents) => this.#report("pool", agents));
    connection.on("shards", (count) => {
      // The last requests of a tunnel that is being closed finish on the connections that it has.
      if (this.#closing === undefined) this.#shards.setCount(count, connection.welcome!);
    });
    connection.on("stopped", (explanation, name) => {
      void this.#shards.close();
      this.#report("stopped", explanation, name);
    });
    connection.on("rejected", (rejection) => {
      void this.#shards.close();
      this.#report("rejected", rejection);
      void this.#end(rejection);
    });
  }
}

/** The server decides whether public URLs are http or https: a proxy in front of it may end TLS. */
function findSchemeWarning(wanted: PublicUrl | undefined, url: string): string | undefined {
  const { protocol } = new URL(url);
  if (wanted?.scheme === undefined || wanted.scheme === protocol) return undefined;
  const [served, asked] = [protocol, wanted.scheme].map((scheme) => scheme.slice(0, -1));
  return `visitors must use ${url}: the public URLs of this server are ${served}, not ${asked} (PUBLIC_SCHEME on the server)`;
}

/** @returns what the agent's hellos say, on its connections to all objects of the tunnel. */
function toHelloPool(health: PoolHealth): () => NonNullable<Hello["pool"]> {
  const instance = randomUUID();
  return () => ({ instance, healthy: health.isHealthy });
}

function formatGates(gates: AgentGates): string {
  const header = formatAgentGates(gates);
  if (header !== null) return header;
  const maxKiB = Math.floor((AGENT_GATES_MAX_CHARS * 0.75) / 1024);
  throw new UsageError(`the policy must have at most ${maxKiB} KiB as JSON`);
}
