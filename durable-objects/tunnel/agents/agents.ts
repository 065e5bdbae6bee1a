/**
 * Who serves a tunnel: takes agents in, decides which of several is the one, and finds it again after
 * hibernation. The newest of the same credential wins; another credential only where nobody is alive.
 */
import { CLOSE, shouldReconnect, type CloseName } from "../../../protocol/wire/close-codes.ts";
import {
  FRAME,
  Hello,
  parseJsonPayload,
  PROTOCOL_VERSION,
  PING,
  PONG,
  readFrames,
  TCP_CAPABILITY,
  type Welcome,
} from "../../../protocol/wire/frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  HELLO_MAX_MS,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import { readAttachment, type Admission, type AgentAttachment } from "./admission.ts";
import { AgentLink } from "./agent-link.ts";

const AGENT_TAG = "agent";

export class Agents {
  readonly #ctx: DurableObjectState;
  readonly #onDisconnected: (meant: boolean) => void;
  readonly #helloTimers = new Map<string, ReturnType<typeof setTimeout>>();
  #current: AgentLink | undefined;

  /** @param onLeft told when the agent that served is gone; `meant`: nobody need wait for its return. */
  constructor(ctx: DurableObjectState, onLeft: (meant: boolean) => void) {
    this.#ctx = ctx;
    this.#onDisconnected = onLeft;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(PING, PONG));
    for (const socket of ctx.getWebSockets(AGENT_TAG)) {
      const attachment = readAttachment(socket);
      if (attachment.kind === "agent" && attachment.hello && isOpen(socket)) {
        this.#current = new AgentLink(socket, attachment, attachment.connectedAtMs);
      }
    }
  }

  /** The agent that serves visitors now, if it is alive. A silent one is let go of. */
  current(nowMs: number): AgentLink | undefined {
    const link = this.#current;
    if (!link) return undefined;
    if (this.#isSilent(link, nowMs)) {
      this.#disconnect(link, "heartbeat_timeout", "nothing was heard from the agent");
    } else if (nowMs >= link.attachment.tokenExpiresAtMs) {
      this.#disconnect(link, "unauthorized", "the token has expired");
    }
    return this.#current;
  }

  /** The token by which the agent serves that was last known to. */
  get credential(): { nonce: string; endsAtMs: number } | undefined {
    if (!this.#current) return undefined;
    const { tokenNonce, tokenExpiresAtMs } = this.#current.attachment;
    return { nonce: tokenNonce, endsAtMs: tokenExpiresAtMs };
  }

  /** The link of a socket that serves; undefined for one that has yet to say hello or was replaced. */
  findLink(socket: WebSocket): AgentLink | undefined {
    const attachment = readAttachment(socket);
    if (attachment.kind !== "agent") return undefined;
    return this.#current?.attachment.agentId === attachment.agentId ? this.#current : undefined;
  }

  /** Takes a socket in. It serves from its hello on, for which it has `HELLO_MAX_MS`. */
  accept(socket: WebSocket, admission: Admission): void {
    const attachment: AgentAttachment = {
      ...admission,
      kind: "agent",
      agentId: crypto.randomUUID(),
      connectedAtMs: Date.now(),
      hello: null,
    };
    this.#ctx.acceptWebSocket(socket, [AGENT_TAG]);
    socket.serializeAttachment(attachment);
    const timer = setTimeout(() => refuse(socket, "protocol_error", "no hello"), HELLO_MAX_MS);
    this.#helloTimers.set(attachment.agentId, timer);
  }

  /**
   * An agent's first message.
   * @returns the link that serves from now on, or undefined when the agent was refused.
   */
  welcome(
    socket: WebSocket,
    attachment: AgentAttachment,
    message: ArrayBuffer,
  ): AgentLink | undefined {
    this.#stopHelloTimer(attachment);
    // What a refused agent says while its Close is on the way.
    if (!isOpen(socket)) return undefined;
    const hello = parseHello(message);
    if (!hello) return refuse(socket, "protocol_error", "the first frame must be a hello");
    if (hello.protocol !== PROTOCOL_VERSION) {
      return refuse(socket, "unsupported_version", `this server speaks ${PROTOCOL_VERSION}`);
    }
    const present = this.current(Date.now());
    if (present && present.attachment.tokenNonce !== attachment.tokenNonce) {
      return refuse(socket, "duplicate_name", "another agent is serving this tunnel");
    }
    const { agent, streamWindow, connectionWindow } = hello;
    const takesTcp = hello.capabilities.includes(TCP_CAPABILITY);
    const welcomed = { ...attachment, hello: { agent, streamWindow, connectionWindow, takesTcp } };
    socket.serializeAttachment(welcomed);
    const link = new AgentLink(socket, welcomed, Date.now());
    this.#current = link;
    link.send((writer) => writer.writeJson(FRAME.welcome, 0, 0, buildWelcome(welcomed)));
    // Requests that the one before did not answer come to this one now, behind its welcome.
    present?.close("replaced", "a newer connection of the same agent took over");
    return link;
  }

  /** The agent sent what it must not. */
  rejectMessage(socket: WebSocket, explanation: string): void {
    const link = this.findLink(socket);
    if (link) this.#disconnect(link, "protocol_error", explanation);
    else refuse(socket, "protocol_error", explanation);
  }

  /** The socket closed from the other side. */
  onClosed(socket: WebSocket): void {
    const attachment = readAttachment(socket);
    if (attachment.kind === "agent") this.#stopHelloTimer(attachment);
    const link = this.findLink(socket);
    if (!link) return;
    this.#current = undefined;
    link.loseStreams();
    this.#onDisconnected(link.isGoingAway);
  }

  /** Ends every agent's connection, or those of one credential, or the one. */
  disconnectAll(
    name: CloseName,
    explanation: string,
    whose: Partial<Pick<AgentAttachment, "tokenNonce" | "agentId">> = {},
  ): void {
    for (const socket of this.#ctx.getWebSockets(AGENT_TAG)) {
      const attachment = readAttachment(socket);
      if (attachment.kind !== "agent" || !isOpen(socket)) continue;
      const { tokenNonce = attachment.tokenNonce, agentId = attachment.agentId } = whose;
      if (attachment.tokenNonce !== tokenNonce || attachment.agentId !== agentId) continue;
      const link = this.findLink(socket);
      if (link) this.#disconnect(link, name, explanation);
      else refuse(socket, name, explanation);
    }
  }

  #disconnect(link: AgentLink, name: CloseName, explanation: string): void {
    this.#current = undefined;
    link.close(name, explanation);
    this.#onDisconnected(!shouldReconnect(CLOSE[name]));
  }

  /** A pending timer would keep the object awake. */
  #stopHelloTimer({ agentId }: AgentAttachment): void {
    const timer = this.#helloTimers.get(agentId);
    if (timer !== undefined) clearTimeout(timer);
    this.#helloTimers.delete(agentId);
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
  const whole = readFrames(new Uint8Array(message), (frame) => {
    if (frame.type !== FRAME.hello) return;
    hello = Hello.safeParse(parseJsonPayload(frame.payload)).data ?? null;
  });
  return whole ? hello : null;
}

function buildWelcome(attachment: AgentAttachment): Welcome {
  return {
    protocol: PROTOCOL_VERSION,
    server: SERVICE_VERSION,
    capabilities: attachment.relay ? [TCP_CAPABILITY] : ["websocket"],
    tunnelId: attachment.tunnelId,
    agentId: attachment.agentId,
    name: attachment.name,
    subdomain: attachment.subdomain,
    url: attachment.url,
    streamWindow: STREAM_WINDOW_BYTES,
    connectionWindow: CONNECTION_WINDOW_BYTES,
    heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS,
    heartbeatTimeoutMs: HEARTBEAT_TIMEOUT_MS,
  };
}
