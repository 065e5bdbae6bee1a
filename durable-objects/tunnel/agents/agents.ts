/**
 * The agents of a tunnel: accepts their connections, decides which of them serve, and restores them after hibernation.
 * The newest connection of the same credential serves, or all agents of a pool (`pool.ts`). Another credential is refused
 * while an agent is alive.
 */
import { CLOSE, shouldReconnect, type CloseName } from "../../../protocol/wire/close-codes.ts";
import {
  FRAME,
  PING,
  PONG,
  PROTOCOL_VERSION,
  SUBPROTOCOL,
  type StatusUpdate,
} from "../../../protocol/wire/frames.ts";
import { formatCloseReason, type CloseSubcode } from "../../../protocol/wire/close-reason.ts";
import { explainVersionMismatch } from "../../../protocol/wire/version-mismatch.ts";
import { HEARTBEAT_TIMEOUT_MS, HELLO_TIMEOUT_MS } from "../../../protocol/limits.ts";
import { answerClose, isOpen, type SocketClose } from "../../websockets.ts";
import { BufferedBytes } from "../buffered-bytes.ts";
import { Pacer } from "../proxy/pacer.ts";
import type { AgentAdmission } from "../admission.ts";
import type { AccessStatus } from "../proxy/access-policy.ts";
import { readAttachment, type AgentAttachment } from "../socket-attachments.ts";
import type { AgentFilter } from "./identity.ts";
import { AgentLink } from "./agent-link.ts";
import { buildWelcome, parseHello, toAttachedHello } from "./handshake.ts";
import { choosePoolAgent, decideJoin, HEARTBEAT_LATE_MS } from "./pool.ts";

const AGENT_TAG = "agent";
/** Connections of a tunnel that have sent no hello yet: beyond them the oldest one is closed, so that a new agent gets in. */
export const CONNECTIONS_WITHOUT_HELLO_MAX = 16;

/** A flood of refused visits costs the agent's connection one small message in this time. */
const REFUSALS_REPORT_MS = 2_000;

/** A serving agent has disconnected. @param willReturn visitors' requests may wait for it. */
type OnDisconnected = (willReturn: boolean) => void;

export class Agents {
  /** The bytes that the whole tunnel buffers, whichever agents serve it. */
  readonly buffered = new BufferedBytes();
  readonly #ctx: DurableObjectState;
  readonly #onDisconnected: OnDisconnected;
  readonly #getShardCount: () => number;
  /** Sockets before their hello, by the agent's id, the oldest first. */
  readonly #awaitingHello = new Map<
    string,
    { socket: WebSocket; timer: ReturnType<typeof setTimeout> }
  >();
  /** Replaced, never changed, so that an agent may disconnect while the list is read. */
  #serving: readonly AgentLink[] = [];
  /** How often one of several agents was chosen for a request. */
  #choices = 0;
  /** How many visits were refused and are not yet reported to each agent: a later one gets none of them. */
  readonly #unreportedRefusals = new Map<AgentLink, number>();

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
        const link = this.#createLink(socket, attachment, attachment.connectedAtMs);
        this.#serving = link.pool ? [...this.#serving, link] : [link];
      }
    }
  }

  /** The agents that serve visitors now, after the ones that may no longer serve have been disconnected. */
  listServing(nowMs: number): readonly AgentLink[] {
    this.disconnectSilentAndExpired(nowMs);
    return this.#serving;
  }

  /** Whether any agent serves visitors now. May disconnect agents, like `listServing`. */
  isAnyServing(nowMs: number): boolean {
    return this.listServing(nowMs).length > 0;
  }

  /** Disconnects the agents that are silent, or whose token has expired. */
  disconnectSilentAndExpired(nowMs: number): void {
    for (const link of this.#serving) {
      if (this.#isSilent(link, nowMs, HEARTBEAT_TIMEOUT_MS)) {
        this.#disconnect(link, "heartbeat_timeout", "no heartbeat from the agent");
      } else if (nowMs >= link.attachment.tokenExpiresAtMs) {
        this.#disconnect(link, "unauthorized", "the token has expired");
      }
    }
  }

  /**
   * The agent that gets a request.
   * @param tried those that it was forwarded to before: others are preferred.
   */
  choose(nowMs: number, tried: readonly AgentLink[] = []): AgentLink | undefined {
    const links = this.listServing(nowMs);
    if (links.length < 2) return links[0];
    const isLate = (link: AgentLink) => this.#isSilent(link, nowMs, HEARTBEAT_LATE_MS);
    const chosen = choosePoolAgent(links, tried, isLate);
    if (chosen) chosen.lastChoice = ++this.#choices;
    return chosen;
  }

  /** The serving agent with this id. */
  find(agentId: string): AgentLink | undefined {
    return this.#serving.find(({ attachment }) => attachment.agentId === agentId);
  }

  /** The token of the serving agents, as last known: no liveness check. */
  get servingToken(): { nonce: string; endsAtMs: number } | undefined {
    const [first] = this.#serving;
    if (!first) return undefined;
    const { tokenNonce, tokenExpiresAtMs } = first.attachment;
    return { nonce: tokenNonce, endsAtMs: tokenExpiresAtMs };
  }

  /** The link of a serving agent's socket; undefined before its hello and after it was replaced. */
  findLink(socket: WebSocket): AgentLink | undefined {
    const attachment = readAttachment(socket);
    return attachment.kind === "agent" ? this.find(attachment.agentId) : undefined;
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
    this.#awaitingHello.set(attachment.agentId, { socket, timer });
    const [oldest] = this.#awaitingHello;
    if (this.#awaitingHello.size <= CONNECTIONS_WITHOUT_HELLO_MAX || !oldest) return;
    this.#stopHelloTimer({ agentId: oldest[0] });
    refuse(
      oldest[1].socket,
      "protocol_error",
      "too many connections of this tunnel without a hello",
    );
  }

  /**
   * An agent's first message.
   * @param access for the welcome.
   * @returns the link that serves from now on, or undefined when the agent was refused.
   */
  welcome(
    socket: WebSocket,
    attachment: AgentAttachment,
    message: ArrayBuffer,
    access: AccessStatus,
  ): AgentLink | undefined {
    this.#stopHelloTimer(attachment);
    // A refused agent may still send while its Close is in flight.
    if (!isOpen(socket)) return undefined;
    const hello = parseHello(message);
    if (!hello) return refuse(socket, "protocol_error", "the first message must be a hello");
    if (hello.protocol !== PROTOCOL_VERSION) {
      const { message: text, subcode } = explainVersionMismatch(hello.protocol, SUBPROTOCOL);
      return refuse(socket, "unsupported_version", text, subcode);
    }
    const welcomed = { ...attachment, hello: toAttachedHello(hello, attachment) };
    const decision = decideJoin(welcomed, this.listServing(Date.now()));
    if ("refusal" in decision)
      return refuse(socket, decision.refusal, decision.message, decision.subcode);
    const { replaced } = decision;
    socket.serializeAttachment(welcomed);
    const link = this.#createLink(socket, welcomed, Date.now());
    this.#serving = [...this.#serving.filter((one) => !replaced.includes(one)), link];
    const welcome = buildWelcome(welcomed, access, this.#getShardCount());
    link.send((writer) => writer.writeJson(FRAME.welcome, 0, 0, welcome));
    // Closing a previous connection forwards its unanswered requests to this one, after its welcome.
    for (const one of replaced) {
      one.close("replaced", "a newer agent with the same token took over");
    }
    this.#sendPoolSize();
    return link;
  }

  /** The agents show it to their user: what visitors must bring, whether they get the maintenance page, and so on. */
  sendStatus(status: StatusUpdate): void {
    for (const link of this.listServing(Date.now())) link.sendStatus(status);
  }

  /** The agents then connect to as many objects as the tunnel has shards. */
  onShardCountChanged(): void {
    const shards = this.#getShardCount();
    for (const link of this.#serving) link.setShardCount(shards);
    this.sendStatus({ shards });
  }

  /** The agents show their user how many visits were refused, which they do not see themselves. */
  countRefusal(): void {
    const isFirst = this.#unreportedRefusals.size === 0;
    for (const link of this.listServing(Date.now())) {
      if (!link.attachment.hello?.readsStatus) continue;
      this.#unreportedRefusals.set(link, (this.#unreportedRefusals.get(link) ?? 0) + 1);
    }
    if (isFirst && this.#unreportedRefusals.size > 0)
      setTimeout(() => this.#reportRefusals(), REFUSALS_REPORT_MS);
  }

  /** The server restarts. */
  sendGoingAway(reason: string): void {
    for (const link of this.listServing(Date.now())) {
      link.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, reason));
    }
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
    link?.whenRead(() => {
      if (!this.#serving.includes(link)) return;
      this.#remove(link);
      link.failStreams();
      // An agent that announced that it goes away does not return.
      this.#onDisconnected(!link.isGoingAway);
    });
  }

  /** Disconnects all agents, or those that `matches` accepts. */
  disconnectAll(name: CloseName, explanation: string, matches: AgentFilter = () => true): void {
    for (const socket of this.#ctx.getWebSockets(AGENT_TAG)) {
      const attachment = readAttachment(socket);
      if (attachment.kind !== "agent" || !isOpen(socket) || !matches(attachment)) continue;
      const link = this.findLink(socket);
      if (link) this.#disconnect(link, name, explanation);
      else refuse(socket, name, explanation);
    }
  }

  // ── Inside ──

  #reportRefusals(): void {
    for (const link of this.listServing(Date.now())) {
      const refused = this.#unreportedRefusals.get(link);
      if (refused !== undefined) link.sendStatus({ refused });
    }
    this.#unreportedRefusals.clear();
  }

  /** The agents of a pool show how many they are. */
  #sendPoolSize(): void {
    if (this.#serving[0]?.pool) this.sendStatus({ agents: this.#serving.length });
  }

  #createLink(socket: WebSocket, attachment: AgentAttachment, lastReceivedAtMs: number): AgentLink {
    const { bandwidthLimitMbps, hello } = attachment;
    const shared = hello?.pool && this.#serving.find(({ pool }) => pool !== undefined);
    const pace = shared?.pace ?? {
      toAgent: new Pacer(bandwidthLimitMbps),
      toVisitors: new Pacer(bandwidthLimitMbps),
    };
    const link = new AgentLink(socket, attachment, lastReceivedAtMs, {
      buffered: this.buffered,
      pace,
      onViolation: () => this.rejectMessage(socket, "unreadable frame"),
      onOverload: () =>
        this.#disconnect(link, "overloaded", "the agent sends too many frames at once"),
    });
    link.setShardCount(this.#getShardCount());
    return link;
  }

  #remove(link: AgentLink): void {
    this.#serving = this.#serving.filter((one) => one !== link);
    this.#sendPoolSize();
  }

  #disconnect(link: AgentLink, name: CloseName, explanation: string): void {
    if (!this.#serving.includes(link)) return;
    this.#remove(link);
    link.close(name, explanation);
    this.#onDisconnected(shouldReconnect(CLOSE[name]));
  }

  /** A pending timer would keep the object awake. */
  #stopHelloTimer({ agentId }: Pick<AgentAttachment, "agentId">): void {
    clearTimeout(this.#awaitingHello.get(agentId)?.timer);
    this.#awaitingHello.delete(agentId);
  }

  #isSilent(link: AgentLink, nowMs: number, maxMs: number): boolean {
    return link.isSilent(nowMs, maxMs, () => {
      return this.#ctx.getWebSocketAutoResponseTimestamp(link.socket)?.getTime() ?? 0;
    });
  }
}

function refuse(
  socket: WebSocket,
  name: CloseName,
  explanation: string,
  subcode?: CloseSubcode,
): undefined {
  socket.close(CLOSE[name], formatCloseReason(name, explanation, subcode));
}
