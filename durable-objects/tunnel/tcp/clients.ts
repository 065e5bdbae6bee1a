/**
 * Clients of `underpass connect`, each a WebSocket that carries one TCP connection: accepted, connected to a
 * stream of the agent, resumed after hibernation, and disconnected when they fall silent.
 */
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import {
  FRAME,
  PROTOCOL_VERSION,
  STREAMS_SUBPROTOCOL,
  RESET,
  type ClientWelcome,
  type StreamPeer,
} from "../../../protocol/wire/frames.ts";
import { formatCloseReason, type CloseSubcode } from "../../../protocol/wire/close-reason.ts";
import { explainVersionMismatch } from "../../../protocol/wire/version-mismatch.ts";
import {
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  HELLO_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
  WIRE_MESSAGE_MAX_BYTES,
} from "../../../protocol/limits.ts";
import { findTcpPort } from "../../../protocol/local-server.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import {
  answerClose,
  answerUpgrade,
  closeQuietly,
  isOpen,
  type SocketClose,
} from "../../websockets.ts";
import { isAllowedAddress } from "../../../access/ip-allowlist.ts";
import { toRefusalResponse } from "../../../access/refusal.ts";
import { CLIENT_HEADER, ClientAdmission } from "../admission.ts";
import { readAttachment, type ClientAttachment, type SavedStream } from "../socket-attachments.ts";
import type { AgentLink } from "../agents/agent-link.ts";
import type { Agents } from "../agents/agents.ts";
import { parseHello } from "../agents/handshake.ts";
import type { Alarm } from "../alarm.ts";
import type { MetricsReporter } from "../metrics/metrics-reporter.ts";
import type { AccessPolicy } from "../proxy/access-policy.ts";
import type { Visitors } from "../proxy/visitors.ts";
import { ClientSocket } from "./client-socket.ts";
import { ClientStream, type ClientStreamDeps, type SharedWindow } from "./client-stream.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** Clients of one tunnel that are connected at the same time. */
export const CLIENTS_MAX = 256;
/** The sum of all clients' windows: the bytes that they may send before the agent has received them. */
export const CONNECT_WINDOWS_MAX_BYTES = 16 * 1024 * 1024;
/** The smallest window of a client; that of all clients fit into the bound above. */
export const CONNECT_WINDOW_MIN_BYTES = 32 * 1024;
/** How often a tunnel looks for silent clients. */
const CONNECT_CHECK_INTERVAL_MS = MINUTE_MS;

const CLIENT_TAG = "client";

interface ClientsDeps {
  agents: Agents;
  alarm: Alarm;
  access: Pick<AccessPolicy, "allowedCidrs">;
  reports: Pick<MetricsReporter, "usage" | "countConnection">;
  visitors: Pick<Visitors, "waitForAgent">;
}

/** A client's stream. Before it is opened, the client has not sent its hello, or waits for an agent. */
type Client = ClientStream | "connecting";

export class Clients {
  readonly #ctx: DurableObjectState;
  readonly #deps: ClientsDeps;
  readonly #clients = new Map<WebSocket, Client>();
  readonly #helloTimers = new Map<WebSocket, ReturnType<typeof setTimeout>>();
  readonly #lastReceivedAtMs = new Map<WebSocket, number>();
  readonly #shared: SharedWindow = { bytes: 0 };

  constructor(ctx: DurableObjectState, deps: ClientsDeps) {
    this.#ctx = ctx;
    this.#deps = deps;
    for (const socket of this.#sockets()) this.#resume(socket);
  }

  /** A client's connection from the API, which has verified its token. */
  accept(request: Request): Response {
    const admission = ClientAdmission.parse(JSON.parse(request.headers.get(CLIENT_HEADER) ?? ""));
    if (!this.#isAllowed(admission.address)) return toRefusalResponse({ code: "forbidden" });
    if (this.#sockets().length >= CLIENTS_MAX) this.#closeSilent();
    const others = this.#sockets();
    if (others.length >= CLIENTS_MAX) return toRefusalResponse({ code: "rate_limited" });
    const windows = others.map((socket) => readClientAttachment(socket).window);
    const { 0: client, 1: server } = new WebSocketPair();
    this.#ctx.acceptWebSocket(server, [CLIENT_TAG]);
    const attachment: ClientAttachment = {
      ...admission,
      kind: "client",
      arrivedAtMs: Date.now(),
      window: computeWindow(windows),
      stream: null,
    };
    server.serializeAttachment(attachment);
    this.#clients.set(server, "connecting");
    const timer = setTimeout(() => close(server, "protocol_error", "no hello"), HELLO_TIMEOUT_MS);
    this.#helloTimers.set(server, timer);
    this.#deps.alarm.scheduleBy(Date.now() + CONNECT_CHECK_INTERVAL_MS, "unconfirmed");
    return answerUpgrade(request, client);
  }

  // ── Called by clients ──

  onMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.#lastReceivedAtMs.set(socket, Date.now());
    if (!isOpen(socket)) return;
    const client = this.#clients.get(socket);
    if (client instanceof ClientStream) this.#receive(client, message);
    else if (client === "connecting") this.#receiveHello(socket, message);
  }

  onClosed(socket: WebSocket, close: SocketClose): void {
    answerClose(socket, close);
    // A Close can wake the object. Its socket is then not among the open ones that the constructor resumed.
    if (!this.#clients.has(socket)) this.#resume(socket);
    const client = this.#clients.get(socket);
    this.#clients.delete(socket);
    this.#lastReceivedAtMs.delete(socket);
    this.#stopHelloTimer(socket);
    if (client instanceof ClientStream) client.onClientClosed();
  }

  // ── Called by the tunnel ──

  /** Disconnects the clients whose addresses are no longer in the allowlist. */
  enforceAllowlist(): void {
    for (const socket of this.#sockets()) {
      if (this.#isAllowed(readClientAttachment(socket).address)) continue;
      this.#disconnect(socket, "forbidden", "the IP allowlist has changed", "address_not_allowed");
    }
  }

  /** Disconnects the clients of capability tokens that were revoked. */
  disconnectTokens(tokenNonces: string[]): void {
    for (const socket of this.#sockets()) {
      if (!tokenNonces.includes(readClientAttachment(socket).tokenNonce)) continue;
      this.#disconnect(socket, "unauthorized", "the token was revoked");
    }
  }

  disconnectAll(name: CloseName, explanation: string): void {
    for (const socket of this.#sockets()) this.#disconnect(socket, name, explanation);
  }

  /** Disconnects clients that are silent, or whose tokens have expired. */
  onAlarm(): void {
    this.#closeSilent();
    const now = Date.now();
    for (const socket of this.#sockets()) {
      if (readClientAttachment(socket).tokenExpiresAtMs > now) continue;
      this.#disconnect(socket, "unauthorized", "the token has expired");
    }
    if (this.#sockets().length === 0) return;
    this.#deps.alarm.scheduleBy(now + CONNECT_CHECK_INTERVAL_MS, "unconfirmed");
  }

  // ── Inside ──

  #receive(stream: ClientStream, message: string | ArrayBuffer): void {
    if (typeof message === "string" || message.byteLength > WIRE_MESSAGE_MAX_BYTES) {
      return stream.fail(RESET.protocolError, "the message contains no valid frames");
    }
    stream.receive(message);
  }

  #receiveHello(socket: WebSocket, message: string | ArrayBuffer): void {
    // A client may send nothing between its hello and the answer.
    const isFirst = this.#stopHelloTimer(socket);
    const hello = isFirst && typeof message !== "string" ? parseHello(message) : null;
    if (!hello) return close(socket, "protocol_error", "the first message must be a hello");
    if (hello.protocol !== PROTOCOL_VERSION) {
      const mismatch = explainVersionMismatch(hello.protocol, STREAMS_SUBPROTOCOL);
      return close(socket, "unsupported_version", mismatch.message, mismatch.subcode);
    }
    if (hello.streamWindow < STREAM_WINDOW_BYTES) {
      return close(socket, "protocol_error", `streamWindow must be ${STREAM_WINDOW_BYTES} or more`);
    }
    void this.#open(socket);
  }

  /** Opens a stream to the connected agent, or to one that reconnects in time. */
  async #open(socket: WebSocket): Promise<void> {
    const { agents, reports } = this.#deps;
    const { address } = readClientAttachment(socket);
    if (!agents.isAnyServing(Date.now())) await this.#deps.visitors.waitForAgent(address);
    if (!isOpen(socket)) return;
    const link = agents.choose(Date.now());
    const output = new ClientSocket(socket);
    if (!link) return output.reset(RESET.agentOffline, "no agent serves the tunnel");
    if (!link.attachment.hello?.takesTcp) {
      return output.reset(
        RESET.agentOffline,
        "the tunnel's agent does not support these connections",
      );
    }
    const attachment = readClientAttachment(socket);
    const stream = new ClientStream(this.#streamDeps(socket, attachment, link, output));
    this.#clients.set(socket, stream);
    reports.countConnection();
    const peer: StreamPeer = { address: attachment.address, port: 0 };
    link.send((writer) => writer.writeJson(FRAME.connect, 0, stream.id, peer));
    const welcome = buildWelcome(attachment, link.attachment.hello.local);
    output.send((writer) => writer.writeJson(FRAME.welcome, 0, 0, welcome));
  }

  #streamDeps(
    socket: WebSocket,
    { window }: ClientAttachment,
    link: AgentLink,
    output: ClientSocket,
  ): ClientStreamDeps {
    const save = (stream: SavedStream | null) => {
      socket.serializeAttachment({ ...readClientAttachment(socket), stream });
    };
    return {
      link,
      socket: output,
      window,
      usage: this.#deps.reports.usage,
      shared: this.#shared,
      save,
    };
  }

  /** Rebuilds a client's stream after hibernation. */
  #resume(socket: WebSocket): void {
    const attachment = readAttachment(socket);
    if (attachment.kind !== "client") return;
    const { stream } = attachment;
    if (!stream) return;
    const output = new ClientSocket(socket);
    const link = this.#deps.agents.find(stream.agentId);
    if (!link) {
      // If both directions have ended, the client has all bytes and closes the connection itself.
      if (stream.hasClientEnded && stream.hasAgentEnded) return;
      return output.reset(RESET.agentOffline, "the tunnel's agent disconnected");
    }
    const deps = this.#streamDeps(socket, attachment, link, output);
    this.#clients.set(socket, new ClientStream(deps, stream));
  }

  #disconnect(
    socket: WebSocket,
    name: CloseName,
    explanation: string,
    subcode?: CloseSubcode,
  ): void {
    const client = this.#clients.get(socket);
    this.#clients.delete(socket);
    this.#stopHelloTimer(socket);
    close(socket, name, explanation, subcode);
    if (client instanceof ClientStream) client.onClientClosed();
  }

  #closeSilent(): void {
    const silentSinceMs = Date.now() - HEARTBEAT_TIMEOUT_MS;
    for (const socket of this.#sockets()) {
      const heartbeat = this.#ctx.getWebSocketAutoResponseTimestamp(socket)?.getTime() ?? 0;
      const { arrivedAtMs } = readClientAttachment(socket);
      const lastReceivedAtMs = Math.max(
        arrivedAtMs,
        heartbeat,
        this.#lastReceivedAtMs.get(socket) ?? 0,
      );
      if (lastReceivedAtMs >= silentSinceMs) continue;
      this.#disconnect(socket, "heartbeat_timeout", "no heartbeat from the client");
    }
  }

  #isAllowed(address: string): boolean {
    const cidrs = this.#deps.access.allowedCidrs;
    return cidrs === null || isAllowedAddress(cidrs, address);
  }

  #sockets(): WebSocket[] {
    return this.#ctx.getWebSockets(CLIENT_TAG).filter(isOpen);
  }

  /** A pending timer would keep the object awake. @returns whether it was running. */
  #stopHelloTimer(socket: WebSocket): boolean {
    const timer = this.#helloTimers.get(socket);
    if (timer !== undefined) clearTimeout(timer);
    return this.#helloTimers.delete(socket);
  }
}

/**
 * The window of the next client: an eighth of the unused bytes, so that the first clients are fast, and at least
 * the minimum, which is set aside for all further clients.
 */
function computeWindow(windows: number[]): number {
  const used = windows.reduce((sum, window) => sum + window, 0);
  const others = CLIENTS_MAX - windows.length - 1;
  const left = CONNECT_WINDOWS_MAX_BYTES - used - others * CONNECT_WINDOW_MIN_BYTES;
  const window = Math.min(Math.floor(left / 8), STREAM_WINDOW_BYTES);
  return Math.max(window, CONNECT_WINDOW_MIN_BYTES);
}

function readClientAttachment(socket: WebSocket): ClientAttachment {
  return readAttachment(socket) as ClientAttachment;
}

function close(
  socket: WebSocket,
  name: CloseName,
  explanation: string,
  subcode?: CloseSubcode,
): void {
  closeQuietly(socket, CLOSE[name], formatCloseReason(name, explanation, subcode));
}

/** @param local the local server, as the agent describes it. */
function buildWelcome(
  { tunnelId, localPort, window }: ClientAttachment,
  local: string | undefined,
): ClientWelcome {
  return {
    protocol: PROTOCOL_VERSION,
    server: SERVICE_VERSION,
    tunnelId,
    localPort: findTcpPort(localPort, local),
    streamWindow: window,
    heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS,
    heartbeatTimeoutMs: HEARTBEAT_TIMEOUT_MS,
  };
}
