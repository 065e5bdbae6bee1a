/** The agent's side of an HTTP tunnel: forwards the requests of its connection to the local server. */
import { EventEmitter } from "node:events";
import {
  AGENT_GATES_HEADER,
  AGENT_GATES_MAX_CHARS,
  formatAgentGates,
  hasGates,
  type AgentGates,
} from "../protocol/schemas/tunnels/agent-gates.ts";
import { CLOSE_CAPABILITY, GATES_CAPABILITY, type Welcome } from "../protocol/wire/frames.ts";
import { openStream } from "./origin/open-stream.ts";
import type { RequestReport } from "./library/types.ts";
import { OriginServer } from "./origin/origin.ts";
import { UsageError } from "./options.ts";
import type { AddedHeader } from "./origin/added-headers.ts";
import type { HostMode } from "./host-header.ts";
import type { Target } from "./target.ts";
import type { TunnelSettings } from "./tunnel-options.ts";
import {
  TunnelConnection,
  type RejectionError,
  type ConnectionEventMap,
} from "./tunnel-connection.ts";

export interface TunnelOptions {
  target: Target;
  server: URL;
  token: Buffer;
  hostMode: HostMode;
  insecureUpstream: boolean;
  settings: TunnelSettings;
  /** The public host to serve: a name below the service's domain, or a custom domain. Default: by the settings. */
  host?: string | undefined;
  /** Set before the first visitor is served. */
  gates?: AgentGates;
  /** For each request to the local server. */
  addedHeaders?: readonly AddedHeader[];
}

export interface TunnelEventMap extends ConnectionEventMap {
  request: [request: RequestReport];
  /** A WebSocket was accepted, or an event stream began. */
  streamOpened: [request: RequestReport];
  streamClosed: [request: RequestReport];
  notice: [message: string];
  /** The function that answers requests threw, or its response's body failed. Without a listener it is printed. */
  handlerError: [error: unknown];
  /** The tunnel has ended: it was closed, or the server rejected it permanently, with this rejection. */
  closed: [rejection: RejectionError | undefined];
}

const GATES_REQUIREMENT = {
  capability: GATES_CAPABILITY,
  message: "the server is too old for --url, --basic-auth and --policy-file; update the server",
};

export class HttpTunnel extends EventEmitter<TunnelEventMap> {
  readonly #origin: OriginServer;
  readonly #connection: TunnelConnection;
  readonly server: URL;
  /** Where `--inspect` listens; undefined when it is off. */
  inspectUrl: string | undefined;
  #isEnded = false;

  constructor(options: TunnelOptions) {
    super();
    const { target, host, gates = {} } = options;
    this.server = options.server;
    this.#origin = new OriginServer(target, options, {
      onRequestFinished: (request) => this.emit("request", request),
      onStreamOpened: (request) => this.emit("streamOpened", request),
      onStreamClosed: (request) => this.emit("streamClosed", request),
      onNotice: (message) => this.emit("notice", message),
      onLocalError: (error) => {
        if (!this.emit("handlerError", error)) console.error(error);
      },
    });
    this.#connection = new TunnelConnection({
      ...options,
      query: {
        protocol: target.scheme,
        port: String(target.port),
        ...(host !== undefined && { host }),
      },
      ...(hasGates(gates) && { firstHeaders: { [AGENT_GATES_HEADER]: formatGates(gates) } }),
      ...((hasGates(gates) || host !== undefined) && { requires: GATES_REQUIREMENT }),
      capabilities: ["websocket", CLOSE_CAPABILITY],
      openStream: (wire, id, opening) =>
        opening.type === "request"
          ? openStream(this.#origin, wire, id, opening.head, opening.flags)
          : null,
    });
    this.#forwardEvents();
  }

  get origin(): OriginServer {
    return this.#origin;
  }

  /** The latest welcome of the server; undefined before the first connection. */
  get welcome(): Welcome | undefined {
    return this.#connection.welcome;
  }

  start(): void {
    this.#connection.start();
  }

  /** Ends the tunnel cleanly: requests in flight may finish, for up to `DRAIN_TIMEOUT_MS`. */
  async close(): Promise<void> {
    await this.#connection.close();
    await this.#end();
  }

  /** Emits `closed` once, however often and for what reason the tunnel is ended. */
  async #end(rejection?: RejectionError): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    await this.#origin.close();
    this.emit("closed", rejection);
  }

  #forwardEvents(): void {
    const connection = this.#connection;
    const setPublicOrigin = ({ url }: Welcome): void => {
      this.#origin.publicOrigin = new URL(url).origin;
    };
    connection.on("ready", setPublicOrigin);
    connection.on("reconnected", setPublicOrigin);
    connection.on("ready", (welcome) => this.emit("ready", welcome));
    connection.on("reconnected", (welcome) => this.emit("reconnected", welcome));
    connection.on("disconnected", (reason) => this.emit("disconnected", reason));
    connection.on("retrying", (reason, inMs) => this.emit("retrying", reason, inMs));
    connection.on("latency", (ms) => this.emit("latency", ms));
    connection.on("stopped", (explanation) => this.emit("stopped", explanation));
    connection.on("rejected", (rejection) => {
      this.emit("rejected", rejection);
      void this.#end(rejection);
    });
  }
}

function formatGates(gates: AgentGates): string {
  const header = formatAgentGates(gates);
  if (header !== null) return header;
  const maxKiB = Math.floor((AGENT_GATES_MAX_CHARS * 0.75) / 1024);
  throw new UsageError(`the policy must have at most ${maxKiB} KiB as JSON`);
}
