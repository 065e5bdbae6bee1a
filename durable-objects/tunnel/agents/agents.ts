/**
 * The agents of a tunnel: accepts their connections, decides which one serves, and restores it after hibernation.
 * The newest connection of the same credential serves. Another credential is refused while an agent is alive.
 */
import { CLOSE, shouldReconnect, type CloseName } from "../../../protocol/wire/close-codes.ts";
import {
  FRAME,
  Hello,
  parseJsonPayload,
  PROTOCOL_VERSION,
  SUBPROTOCOL,
  PING,
  PONG,
  readFrames,
  CLOSE_CAPABILITY,
  GATES_CAPABILITY,
  REQUEST_IDS_CAPABILITY,
  STATUS_CAPABILITY,
  TCP_CAPABILITY,
  type GateName,
  type TunnelStatus,
  type Welcome,
} from "../../../protocol/wire/frames.ts";
import { explainVersionMismatch } from "../../../protocol/wire/version-mismatch.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  HELLO_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import { answerClose, type SocketClose } from "../../close-quietly.ts";
import { BufferedBytes } from "../buffered-bytes.ts";
import { readAttachment, type AgentAdmission, type AgentAttachment } from "./admission.ts";
import { AgentLink } from "./agent-link.ts";

const AGENT_TAG = "agent";
/** Connections of a tunnel that have sent no hello yet: beyond them the oldest one is closed, so that a new agent gets in. */
export const SILENT_AGENTS_MAX = 16;

/** A flood of refused visits costs the agent's connection one small message in this time. */
const REFUSALS_REPORT_MS = 2_000;

/** The serving agent has disconnected. @param willReturn visitors' requests may wait for it. */
type OnDisconnected = (willReturn: boolean) => void;

export class Agents {
  /** Of the whole tunnel, whichever agents serve it. */
  readonly buffered = new BufferedBytes();
  readonly #ctx: DurableObjectState;
  readonly #onDisconnected: OnDisconnected;
  readonly #getShardCount: () => number;
  /** Sockets before their hello, by the agent's id, the oldest first. */
  readonly #silent = new Map<string, { socket: WebSocket; timer: ReturnType<typeof setTimeout> }>();
  #current: AgentLink | undefined;
  /** Visits that were refused and are not yet reported to the agent. */
  #unreportedRefusals = 0;

  constructor(
    ctx: DurableObjectState,
    getShardCount: () => number,
    onDisconnected: OnDisconnected,
  ) {
    this.#ctx = ctx;
    this.#getShardCount = getShardCount;
    this.#onDisconnected = onDisconnected;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(PING, PONG));
    for (const socket of ctx.getWebSockets(AGENT_TAG)) {
      const attachment = readAttachment(socket);
      if (attachment.kind === "agent" && attachment.hello && isOpen(socket)) {
        this.#current = this.#createLink(socket, attachment, attachment.connectedAtMs);
      }
    }
  }

  /** The agent that serves visitors now. One that is silent, or whose token has expired, is disconnected first. */
  current(nowMs: number): AgentLink | undefined {
    const link = this.#current;
    if (!link) return undefined;
    if (this.#isSilent(link, nowMs)) {
      this.#disconnect(link, "heartbeat_timeout", "no heartbeat from the agent");
    } else if (nowMs >= link.attachment.tokenExpiresAtMs) {
      this.#disconnect(link, "unauthorized", "the token has expired");
    }
    return this.#current;
  }

  /** The token of the serving agent, as last known: no liveness check. */
  get servingToken(): { nonce: string; endsAtMs: number } | undefined {
    if (!this.#current) return undefined;
    const { tokenNonce, tokenExpiresAtMs } = this.#current.attachment;
    return { nonce: tokenNonce, endsAtMs: tokenExpiresAtMs };
  }

  /** The link of the serving agent's socket; undefined before its hello and after it was replaced. */
  findLink(socket: WebSocket): AgentLink | undefined {
    const attachment = readAttachment(socket);
    if (attachment.kind !== "agent") return undefined;
    return this.#current?.attachment.agentId === attachment.agentId ? this.#current : undefined;
  }

  /** Accepts a socket. The agent serves from its hello on, which must arrive within `HELLO_TIMEOUT_MS`. */
  accept(socket: WebSocket, admission: AgentAdmission): void {
    const attachment: AgentAttachment = {
      ...admission,
      kind: "agent",
      agentId: crypto.randomUUID(),
      connectedAtMs: Date.now(),
      hello: null,
    };
    this.#ctx.acceptWebSocket(socket, [AGENT_TAG]);
    socket.serializeAttachment(attachment);
    const timer = setTimeout(() => refuse(socket, "protocol_error", "no hello"), HELLO_TIMEOUT_MS);
    this.#silent.set(attachment.agentId, { socket, timer });
    const [oldest] = this.#silent;
    if (this.#silent.size <= SILENT_AGENTS_MAX || !oldest) return;
    this.#stopHelloTimer({ agentId: oldest[0] });
    refuse(
      oldest[1].socket,
      "protocol_error",
      "too many connections of this tunnel without a hello",
    );
  }

  /**
   * An agent's first message.
   * @param gates those of the tunnel, for the welcome.
   * @returns the link that serves from now on, or undefined when the agent was refused.
   */
  welcome(
    socket: WebSocket,
    attachment: AgentAttachment,
    message: ArrayBuffer,
    gates: GateName[],
  ): AgentLink | undefined {
    this.#stopHelloTimer(attachment);
    // A refused agent may still send while its Close is in flight.
    if (!isOpen(socket)) return undefined;
    const hello = parseHello(message);
    if (!hello) return refuse(socket, "protocol_error", "the first frame must be a hello");
    if (hello.protocol !== PROTOCOL_VERSION) {
      const explanation = explainVersionMismatch(hello.protocol, SUBPROTOCOL);
      return refuse(socket, "unsupported_version", explanation);
    }
    const serving = this.current(Date.now());
    if (serving && serving.attachment.tokenNonce !== attachment.tokenNonce) {
      return refuse(socket, "duplicate_name", "another agent is serving this tunnel");
    }
    const { agent, streamWindow, connectionWindow } = hello;
    const capabilities = new Set(hello.capabilities);
    const welcomed = {
      ...attachment,
      hello: {
        agent,
        streamWindow,
        connectionWindow,
        takesTcp: capabilities.has(TCP_CAPABILITY),
        answersClose: capabilities.has(CLOSE_CAPABILITY),
        readsStatus: capabilities.has(STATUS_CAPABILITY),
        readsRequestIds: capabilities.has(REQUEST_IDS_CAPABILITY),
      },
    };
    socket.serializeAttachment(welcomed);
    const link = this.#createLink(socket, welcomed, Date.now());
    this.#current = link;
    const shards = this.#getShardCount();
    const welcome = { ...buildWelcome(welcomed, gates), ...(shards > 1 && { shards }) };
    link.send((writer) => writer.writeJson(FRAME.welcome, 0, 0, welcome));
    // Closing the previous agent forwards its unanswered requests to this one, after its welcome.
    serving?.close("replaced", "a newer connection of the same agent took over");
    return link;
  }

  /** The agent shows its user what visitors must bring. */
  sendGates(gates: GateName[]): void {
    this.#sendStatus({ gates });
  }

  /** The agent connects to as many objects. */
  onShardCountChanged(): void {
    const shards = this.#getShardCount();
    this.#current?.setShardCount(shards);
    this.#sendStatus({ shards });
  }

  /** The agent shows its user how many visits were refused, which it does not see itself. */
  countRefusal(): void {
    if (!this.current(Date.now())?.attachment.hello?.readsStatus) return;
    this.#unreportedRefusals += 1;
    if (this.#unreportedRefusals > 1) return;
    setTimeout(() => {
      this.#sendStatus({ refused: this.#unreportedRefusals });
      this.#unreportedRefusals = 0;
    }, REFUSALS_REPORT_MS);
  }

  #sendStatus(status: TunnelStatus): void {
    const link = this.current(Date.now());
    if (!link?.attachment.hello?.readsStatus) return;
    link.send((writer) => writer.writeJson(FRAME.status, 0, 0, status));
  }

  /** The agent violated the protocol. */
  rejectMessage(socket: WebSocket, explanation: string): void {
    const link = this.findLink(socket);
    if (link) this.#disconnect(link, "protocol_error", explanation);
    else refuse(socket, "protocol_error", explanation);
  }

  /** The agent closed its socket, or the connection broke. */
  onClosed(socket: WebSocket, close: SocketClose): void {
    answerClose(socket, close);
    const attachment = readAttachment(socket);
    if (attachment.kind === "agent") this.#stopHelloTimer(attachment);
    const link = this.findLink(socket);
    if (!link) return;
    this.#current = undefined;
    link.failStreams();
    // An agent that announced that it goes away does not return.
    this.#onDisconnected(!link.isGoingAway);
  }

  /** Disconnects all agents, or those of one credential, or a single one. */
  disconnectAll(
    name: CloseName,
    explanation: string,
    filter: Partial<Pick<AgentAttachment, "tokenNonce" | "agentId">> = {},
  ): void {
    for (const socket of this.#ctx.getWebSockets(AGENT_TAG)) {
      const attachment = readAttachment(socket);
      if (attachment.kind !== "agent" || !isOpen(socket)) continue;
      const { tokenNonce = attachment.tokenNonce, agentId = attachment.agentId } = filter;
      if (attachment.tokenNonce !== tokenNonce || attachment.agentId !== agentId) continue;
      const link = this.findLink(socket);
      if (link) this.#disconnect(link, name, explanation);
      else refuse(socket, name, explanation);
    }
  }

  #createLink(socket: WebSocket, attachment: AgentAttachment, heardAtMs: number): AgentLink {
    const link = new AgentLink(socket, attachment, heardAtMs, this.buffered);
    link.setShardCount(this.#getShardCount());
    return link;
  }

  #disconnect(link: AgentLink, name: CloseName, explanation: string): void {
    this.#current = undefined;
    link.close(name, explanation);
    this.#onDisconnected(shouldReconnect(CLOSE[name]));
  }

  /** A pending timer would keep the object awake. */
  #stopHelloTimer({ agentId }: Pick<AgentAttachment, "agentId">): void {
    clearTimeout(this.#silent.get(agentId)?.timer);
    this.#silent.delete(agentId);
  }

  #isSilent(link: AgentLink, nowMs: number): boolean {
    return link.isSilent(nowMs, () => {
      return this.#ctx.getWebSocketAutoResponseTimestamp(link.socket)?.getTime() ?? 0;
    });
  }
}

function isOpen(socket: WebSocket): boolean {
  return socket.readyState === WebSocket.OPEN;
}

function refuse(socket: WebSocket, name: CloseName, explanation: string): undefined {
  socket.close(CLOSE[name], `${name}: ${explanation}`);
}

function parseHello(message: ArrayBuffer): Hello | null {
  let hello: Hello | null = null;
  const isComplete = readFrames(new Uint8Array(message), (frame) => {
    if (frame.type !== FRAME.hello) return;
    hello = Hello.safeParse(parseJsonPayload(frame.payload)).data ?? null;
  });
  return isComplete ? hello : null;
}

function buildWelcome(attachment: AgentAttachment, gates: GateName[]): Welcome {
  return {
    protocol: PROTOCOL_VERSION,
    server: SERVICE_VERSION,
    capabilities: attachment.relay
      ? [TCP_CAPABILITY]
      : ["websocket", CLOSE_CAPABILITY, GATES_CAPABILITY],
    tunnelId: attachment.tunnelId,
    agentId: attachment.agentId,
    name: attachment.name,
    subdomain: attachment.subdomain,
    url: attachment.url,
    streamWindow: STREAM_WINDOW_BYTES,
    connectionWindow: CONNECTION_WINDOW_BYTES,
    heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS,
    heartbeatTimeoutMs: HEARTBEAT_TIMEOUT_MS,
    gates,
  };
}
