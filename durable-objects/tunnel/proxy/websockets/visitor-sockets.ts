/** The WebSockets of a tunnel's visitors: opened, resumed after hibernation, and limited in number. */
import { getAddressGroup } from "../../../../shared/address-group.ts";
import { ACKNOWLEDGED_HEADER } from "../../../../protocol/front-proxy/acknowledgements.ts";
import { toRefusalResponse, withRetryAfter } from "../../../../access/refusal.ts";
import { readAttachment, type VisitorAttachment } from "../../socket-attachments.ts";
import type { AgentLink } from "../../agents/agent-link.ts";
import { closeQuietly, type SocketClose } from "../../../websockets.ts";
import type { Agents } from "../../agents/agents.ts";
import type { Captures } from "../../captures/captures.ts";
import type { Recording } from "../../captures/recording.ts";
import type { MetricsReporter } from "../../metrics/metrics-reporter.ts";
import { LARGE_HEAD_REFUSAL, type RequestHead } from "../heads.ts";
import { WebSocketHandshake } from "./socket-handshake.ts";
import { SocketMemory } from "./socket-memory.ts";
import { SourceSlots } from "../../../../shared/bounds/source-slots.ts";
import { VisitorSocket } from "./visitor-socket.ts";

/** The maximum for one tunnel, including handshakes. A single source may have half of them. */
export const VISITOR_SOCKETS_MAX = 4_096;
/** When a visitor may try again after its WebSocket was refused because too many were open. */
const SOCKET_RETRY_AFTER_MS = 5_000;

const VISITOR_TAG = "visitor";

interface VisitorSocketsDeps {
  agents: Agents;
  captures: Captures;
  reports: Pick<MetricsReporter, "usage">;
}

/** A visitor's request for a WebSocket. */
interface SocketRequest {
  requestId: string;
  head: RequestHead;
  /** The visitor's. */
  address: string;
  /** The key of the front proxy's acknowledgements; null where no front proxy acknowledges. */
  acknowledgementKey: string | null;
  recording: Recording | null;
  /** Aborted when the visitor disconnects. */
  signal: AbortSignal;
}

export class VisitorSockets {
  readonly #ctx: DurableObjectState;
  readonly #deps: VisitorSocketsDeps;
  readonly #sockets = new Map<WebSocket, VisitorSocket>();
  /** Those that were closed because their agent was gone when the object woke up. */
  readonly #abandoned = new WeakSet<WebSocket>();
  readonly #slots = new SourceSlots(VISITOR_SOCKETS_MAX);
  readonly #memory = new SocketMemory();

  constructor(ctx: DurableObjectState, deps: VisitorSocketsDeps) {
    this.#ctx = ctx;
    this.#deps = deps;
    for (const socket of ctx.getWebSockets(VISITOR_TAG)) this.#resume(socket);
  }

  /** Makes the handshake with the local server, and answers as it does. */
  async open(link: AgentLink, request: SocketRequest): Promise<Response> {
    const { head, requestId, recording, signal } = request;
    const source = getAddressGroup(request.address);
    if (this.#memory.isFull || !this.#slots.take(source)) {
      recording?.fail("unavailable");
      return toRefusalResponse(withRetryAfter("unavailable", SOCKET_RETRY_AFTER_MS));
    }
    const { usage } = this.#deps.reports;
    const deps = { usage, memory: this.#memory, recording, signal, requestId };
    const handshake = new WebSocketHandshake(link, head, deps);
    const outcome = await handshake.outcome;
    if (outcome instanceof Response) {
      this.#slots.free(source);
      return outcome;
    }
    if (typeof outcome === "string") {
      this.#slots.free(source);
      const refusal = outcome === "too_large" ? LARGE_HEAD_REFUSAL : { code: outcome };
      if (signal.aborted) recording?.abort();
      else recording?.fail(refusal.code);
      return toRefusalResponse(refusal);
    }
    const { 0: client, 1: server } = new WebSocketPair();
    this.#ctx.acceptWebSocket(server, [VISITOR_TAG]);
    const { acknowledgementKey } = request;
    const attachment: VisitorAttachment = {
      kind: "visitor",
      agentId: link.attachment.agentId,
      stream: handshake.id,
      source,
      acknowledgementKey,
      capture: recording?.id ?? null,
    };
    server.serializeAttachment(attachment);
    handshake.handOver(this.#add(link, server, attachment));
    const { headers } = outcome;
    if (acknowledgementKey !== null) headers.set(ACKNOWLEDGED_HEADER, "1");
    return new Response(null, { status: 101, webSocket: client, headers });
  }

  /** The server restarts. */
  closeAll(reason: string): void {
    for (const socket of this.#sockets.keys()) closeQuietly(socket, 1012, reason);
  }

  // ── Called by visitors' WebSockets ──

  onMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.#sockets.get(socket)?.onMessage(message);
  }

  onClosed(socket: WebSocket, close: SocketClose): void {
    // A Close can wake the object. Its socket is then not among the open ones that the constructor resumed.
    if (!this.#sockets.has(socket) && !this.#abandoned.has(socket)) this.#resume(socket);
    this.#sockets.get(socket)?.onClosed(close);
  }

  // ── Inside ──

  /** Rebuilds the stream of a visitor's WebSocket after hibernation. */
  #resume(socket: WebSocket): void {
    const attachment = readVisitorAttachment(socket);
    const { agentId, stream, source, capture } = attachment;
    if (capture !== null) this.#deps.captures.resumeRecording(capture);
    const link = this.#deps.agents.find(agentId);
    if (!link) {
      this.#abandoned.add(socket);
      this.#findRecording(capture)?.fail("agent_offline");
      return closeQuietly(socket, 1012, "the tunnel's agent disconnected");
    }
    this.#slots.add(source);
    link.resume(stream, this.#add(link, socket, attachment));
  }

  #add(
    link: AgentLink,
    socket: WebSocket,
    { stream, source, acknowledgementKey, capture }: VisitorAttachment,
  ): VisitorSocket {
    const deps = {
      acknowledgementKey,
      usage: this.#deps.reports.usage,
      memory: this.#memory,
      findRecording: () => this.#findRecording(capture),
      onDone: () => {
        this.#sockets.delete(socket);
        this.#slots.free(source);
      },
    };
    const visitor = new VisitorSocket(link, stream, socket, deps);
    this.#sockets.set(socket, visitor);
    return visitor;
  }

  #findRecording(capture: string | null): Recording | undefined {
    return capture === null ? undefined : this.#deps.captures.findRecording(capture);
  }
}

function readVisitorAttachment(socket: WebSocket): VisitorAttachment {
  return readAttachment(socket) as VisitorAttachment;
}
