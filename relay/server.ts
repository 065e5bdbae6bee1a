/**
 * The relay's own TCP port: control connections of agents (`/agent`), their data connections (`/stream`), and
 * `/health` and `/metrics` for the operator. Where the front proxy of a self-hosted server passes on agents that connect
 * to it, it does so on a socket that only this user can open, on which there is nothing for the operator.
 */
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { ListenOptions, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { z } from "zod";
import { getAddressGroup } from "../shared/address-group.ts";
import { CF_BLOB_HEADER } from "../shared/client-address.ts";
import { equalInConstantTime } from "../shared/constant-time.ts";
import {
  EXPOSITION_TYPES,
  formatFamilies,
  type MetricFamily,
} from "../shared/metrics/exposition.ts";
import { SourceSlots } from "../shared/bounds/source-slots.ts";
import { RELAY_SUBPROTOCOL, DATA_CONNECTION_UPGRADE } from "../protocol/relay/datagrams.ts";
import { CONTROL_PATH, DATA_PATH, RELAY_PATH } from "../protocol/relay/paths.ts";
import { explainSubprotocolMismatch } from "../protocol/wire/version-mismatch.ts";
import { SPLICED_SOCKET_BUFFER_BYTES } from "../sockets/splice.ts";
import { ControlConnection, type ControlOptions } from "./control/control-connection.ts";
import { LISTEN_BACKLOG } from "./limits.ts";
import { parseBearerSecret, parseBearerToken } from "../shared/bearer-token.ts";
import { isLoopback, parseHostName, unmapIpv4Address } from "../shared/hosts.ts";
import { parseJson } from "../shared/json.ts";
import { waitForClose } from "../sockets/close-event.ts";
import { createServer } from "../sockets/node-http.ts";

/** A JSON or datagram message of an agent. A resume of 4,096 flows has at most 475 KB. */
const AGENT_MESSAGE_MAX_BYTES = 1024 * 1024;
/** Tickets that are verified at a time. */
const PENDING_UPGRADES_MAX = 1_024;
/** How long the close messages to agents may take when the relay stops. */
const STOP_MAX_MS = 2_000;

const Forwarded = z.object({ clientIp: z.string() });

export interface RelayServerOptions extends ControlOptions {
  bind: string;
  port: number;
  /** The operator's, for `/metrics`. */
  secret: string;
  health(): Record<string, unknown>;
  collectMetrics(): MetricFamily[];
  /** All connections to the port. One source gets at most half of them; further ones are closed at once. */
  maxConnections: number;
  limits?: Partial<RelayServerLimits>;
}

/** Limits of what strangers, who have no ticket, can hold. */
interface RelayServerLimits {
  /** How long a connection may take to send the head of a request. */
  headersMaxMs: number;
  /** How often that is checked. */
  headersCheckMs: number;
  /** Agents whose ticket is being verified. One source gets at most half of them; further ones get 503. */
  maxPendingUpgrades: number;
}

const DEFAULT_LIMITS: RelayServerLimits = {
  headersMaxMs: 10_000,
  headersCheckMs: 1_000,
  maxPendingUpgrades: PENDING_UPGRADES_MAX,
};

export class RelayServer {
  readonly #options: RelayServerOptions;
  readonly #limits: RelayServerLimits;
  readonly #server: Server;
  /** For agents that come through the front proxy, which limits their connections. */
  readonly #forwarded: Server;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    maxPayload: AGENT_MESSAGE_MAX_BYTES,
    perMessageDeflate: false,
    // An agent of another version reads the Close only if the response names a protocol that it offered.
    handleProtocols: (offered) =>
      offered.has(RELAY_SUBPROTOCOL) ? RELAY_SUBPROTOCOL : ([...offered][0] ?? false),
  });
  readonly #pendingUpgrades: SourceSlots;

  constructor(options: RelayServerOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#server = this.#createServer((request, response) =>
      this.#handleRequest(request, response),
    );
    const slots = new SourceSlots(options.maxConnections);
    this.#server.on("connection", (socket) => {
      const source = getAddressGroup(socket.remoteAddress ?? "");
      if (!slots.take(source)) return void socket.destroy();
      socket.once("close", () => slots.free(source));
    });
    this.#pendingUpgrades = new SourceSlots(this.#limits.maxPendingUpgrades);
    this.#server.on("upgrade", (request, socket, head) => {
      const { remoteAddress = "" } = request.socket;
      this.#handleUpgrade({ request, path: getPath(request), remoteAddress, socket, head });
    });
    this.#forwarded = this.#createServer((_, response) => {
      response.setHeader("connection", "close");
      end(response, 404, "text/plain", "not found\n");
    });
    this.#forwarded.on("upgrade", (request, socket, head) => {
      const full = getPath(request);
      const path = full.startsWith(RELAY_PATH) ? full.slice(RELAY_PATH.length) : "";
      const remoteAddress = readForwardedAddress(request);
      this.#handleUpgrade({ request, path, remoteAddress, socket, head });
    });
  }

  #createServer(handle: (request: IncomingMessage, response: ServerResponse) => void): Server {
    const { headersMaxMs, headersCheckMs } = this.#limits;
    const options = {
      headersTimeout: headersMaxMs,
      requestTimeout: headersMaxMs,
      connectionsCheckingInterval: headersCheckMs,
      noDelay: true,
      highWaterMark: SPLICED_SOCKET_BUFFER_BYTES,
    };
    return createServer(options, handle).on("clientError", (_, socket) => socket.destroy());
  }

  /** @throws the system's error when the port can't be bound. */
  async listen(): Promise<void> {
    const { port, bind } = this.#options;
    await this.#listen(this.#server, { port, host: bind });
  }

  /** @throws the system's error when the socket can't be created. */
  async listenToFrontProxy(path: string): Promise<void> {
    await this.#listen(this.#forwarded, { path });
  }

  async #listen(server: Server, address: ListenOptions): Promise<void> {
    server.listen({ ...address, backlog: LISTEN_BACKLOG });
    await once(server, "listening");
    server.on("error", (error) =>
      this.#options.log.warn("could not accept a connection of an agent", { error: error.message }),
    );
  }

  /** Resolves when the connections of agents are closed, or after `STOP_MAX_MS`. */
  async close(): Promise<void> {
    const closed = waitForClose(this.#server);
    this.#server.close();
    this.#forwarded.close();
    const ended = [...this.#webSockets.clients].map((socket) => waitForClose(socket));
    const deadline = new Promise((resolve) => setTimeout(resolve, STOP_MAX_MS).unref());
    await Promise.race([Promise.all(ended), deadline]);
    for (const socket of this.#webSockets.clients) socket.terminate();
    this.#server.closeAllConnections();
    this.#forwarded.closeAllConnections();
    await Promise.race([closed, deadline]);
  }

  // ── Requests ──

  #handleRequest(request: IncomingMessage, response: ServerResponse): void {
    const path = getPath(request);
    if (request.method !== "GET") return end(response, 405, "text/plain", "method not allowed\n");
    if (path === "/health") {
      const health = JSON.stringify(this.#options.health());
      return end(response, 200, "application/json", `${health}\n`);
    }
    if (path === "/metrics") {
      // For other callers the path does not exist.
      if (!this.#isOperator(request)) return end(response, 404, "text/plain", "not found\n");
      const families = this.#options.collectMetrics();
      // A self-hosted server adds them to its own.
      return request.headers.accept === "application/json"
        ? end(response, 200, "application/json", JSON.stringify(families))
        : end(response, 200, EXPOSITION_TYPES.prometheus, formatFamilies(families));
    }
    if (path === CONTROL_PATH || path === DATA_PATH) {
      response.setHeader("upgrade", path === CONTROL_PATH ? "websocket" : DATA_CONNECTION_UPGRADE);
      return end(response, 426, "text/plain", "upgrade required\n");
    }
    end(response, 404, "text/plain", "not found\n");
  }

  /**
   * The caller has the relay's secret, or is on this machine and not forwarded by a proxy on it. Without the secret it must
   * name a loopback host: a hostile page could let its own name resolve to this machine (DNS rebinding).
   */
  #isOperator(request: IncomingMessage): boolean {
    const secret = parseBearerSecret(request.headers.authorization);
    if (secret !== null) return equalInConstantTime(secret, this.#options.secret);
    const address = unmapIpv4Address(request.socket.remoteAddress ?? "");
    const isProxied = ["forwarded", "x-forwarded-for", "via", "x-real-ip"].some(
      (name) => request.headers[name] !== undefined,
    );
    const name = parseHostName(request.headers.host);
    return !isProxied && isLoopback(address) && name !== null && isLoopback(name);
  }

  // ── Upgrades ──

  #handleUpgrade(upgrade: Upgrade): void {
    const { path, socket } = upgrade;
    socket.on("error", () => {});
    if (path === CONTROL_PATH) this.#connectAgent(upgrade);
    else if (path === DATA_PATH) this.#connectStream(upgrade);
    else refuseUpgrade(socket, "404 Not Found");
  }

  #connectAgent({ request, remoteAddress, socket, head }: Upgrade): void {
    const source = getAddressGroup(remoteAddress);
    if (!this.#pendingUpgrades.take(source)) {
      return refuseUpgrade(socket, "503 Service Unavailable");
    }
    const free = () => this.#pendingUpgrades.free(source);
    let isUpgraded = false;
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      isUpgraded = true;
      const connection = new ControlConnection(webSocket, socket, this.#options);
      if (webSocket.protocol !== RELAY_SUBPROTOCOL) {
        free();
        const offered = [webSocket.protocol];
        const { message, subcode } = explainSubprotocolMismatch(offered, RELAY_SUBPROTOCOL);
        return connection.close("unsupported_version", message, subcode);
      }
      void connection.start(parseBearerToken(request.headers.authorization)).finally(free);
    });
    // An invalid handshake is answered at once.
    if (!isUpgraded) free();
  }

  #connectStream({ request, socket, head }: Upgrade): void {
    if (request.headers.upgrade?.toLowerCase() !== DATA_CONNECTION_UPGRADE) {
      return refuseUpgrade(socket, "426 Upgrade Required");
    }
    const [, id = "", key = ""] =
      /^(\d{1,10})\.(.+)$/.exec(parseBearerToken(request.headers.authorization) ?? "") ?? [];
    const association = this.#options.associations.findTunnel(Number(id));
    if (!association || !equalInConstantTime(key, association.streamKey)) {
      return refuseUpgrade(socket, "401 Unauthorized");
    }
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${DATA_CONNECTION_UPGRADE}\r\n\r\n`,
    );
    association.takeDataConnection(socket as Socket, head);
  }
}

interface Upgrade {
  request: IncomingMessage;
  path: string;
  /** The agent's, maybe empty. */
  remoteAddress: string;
  socket: Duplex;
  head: Buffer;
}

/** The address that the front proxy has seen. */
function readForwardedAddress({ headers }: IncomingMessage): string {
  return Forwarded.safeParse(parseJson(String(headers[CF_BLOB_HEADER]))).data?.clientIp ?? "";
}

function getPath(request: IncomingMessage): string {
  return (request.url ?? "").split("?", 1)[0] ?? "";
}

function refuseUpgrade(socket: Duplex, status: string): void {
  const response = `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
  socket.end(response, () => socket.destroy());
}

function end(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
}
