/**
 * Visitors' requests and WebSockets while they are on their way: judged, given to the agent that is there or
 * that comes back in time, answered.
 */
import { getClientAddress, type AddressTrust } from "../../../shared/client-address.ts";
import { DRAIN_MAX_MS, HEARTBEAT_INTERVAL_MS, RECONNECT_MAX_MS } from "../../../protocol/limits.ts";
import { refuse, withRetryAfter } from "../../../access/refusal.ts";
import { GATES_HEADER } from "../../../access/settings.ts";
import { readAttachment, type VisitorAttachment } from "../agents/admission.ts";
import type { AgentLink } from "../agents/agent-link.ts";
import { closeQuietly } from "../../close-quietly.ts";
import type { LastAgent } from "../agents/last-agent.ts";
import type { Agents } from "../agents/agents.ts";
import type { Captures } from "../captures/captures.ts";
import type { Recording } from "../captures/recording.ts";
import { consumeResponse, type Replay } from "../captures/replay.ts";
import type { CustomHosts } from "./custom-hosts.ts";
import { Exchange, type ExchangeOutcome, type ForwardableRequest, type ExchangeDeps } from "./exchange.ts";
import type { AccessPolicy } from "./access-policy.ts";
import { buildRequestHead, type RequestHead } from "./heads.ts";
import type { Lifetime } from "../agents/lifetime.ts";
import { ParkedRequests, getGracePeriodLeftMs } from "../agents/parked-requests.ts";
import { SocketHandshake } from "./socket-handshake.ts";
import type { Usage } from "../metrics/usage.ts";
import { VisitorSocket } from "./visitor-socket.ts";

const VISITOR_TAG = "visitor";
/** For visitors. */
const STOPPED = "The owner of this tunnel has stopped it, and can start it again.";

/** One visitor's request, until it is answered. */
interface PendingRequest {
  request: ForwardableRequest;
  head: RequestHead;
  recording: Recording | null;
  resolve(answer: Response | Promise<Response>): void;
  /** To how many agents it was given. */
  attempts: number;
}

/** The tunnel that they visit. */
export interface VisitorsDeps {
  agents: Agents;
  agentTrace: LastAgent;
  lifetime: Lifetime;
  gatekeeper: AccessPolicy;
  customHosts: CustomHosts;
  listCaptures: Captures;
  usage: Usage;
  /** For a request that does not come as a visit. */
  counted(request: Pick<ForwardableRequest, "signal">, answer: Promise<Response>): Promise<Response>;
  trust: AddressTrust;
  /** The scheme that visitors use. */
  proto: string;
}

export class Visitors {
  readonly #ctx: DurableObjectState;
  readonly #tunnel: VisitorsDeps;
  readonly #surroundings: ExchangeDeps;
  readonly #parking = new ParkedRequests();
  readonly #sockets = new Map<WebSocket, VisitorSocket>();
  #inFlight = 0;
  #silenceCheck: ReturnType<typeof setInterval> | undefined;

  constructor(ctx: DurableObjectState, tunnel: VisitorsDeps) {
    this.#ctx = ctx;
    this.#tunnel = tunnel;
    this.#surroundings = {
      usage: tunnel.usage,
      hosted: tunnel.trust.hosted,
      onDone: () => void (this.#inFlight -= 1),
    };
    for (const socket of ctx.getWebSockets(VISITOR_TAG)) this.#resume(socket);
  }

  visit(request: Request): Promise<Response> {
    const { listCaptures, customHosts, gatekeeper, trust, proto } = this.#tunnel;
    if (customHosts.hasMovedAway(request)) return Promise.resolve(refuse({ code: "tunnel_not_found" }));
    const address = getClientAddress(request, trust);
    const head = buildRequestHead(request, { address, proto });
    const recording = listCaptures.startRecording({
      parts: head.parts,
      hasBody: request.body !== null,
      isSocket: head.isSocket,
      clientIp: address,
      replayOf: null,
    });
    if (gatekeeper.isOpen && head.edgeVerdict === null) return this.#admit(request, head, recording);
    return this.#visitGated(request, head, address, recording);
  }

  /**
   * Not past what stands before the tunnel: who may do this owns it.
   * @returns the id of its recording when it is over.
   */
  async replay({ head, body }: Replay, of: string): Promise<string | null> {
    const hasBody = body.byteLength > 0;
    const recording = this.#tunnel.listCaptures.startReplayRecording({
      parts: head.parts,
      hasBody,
      isSocket: false,
      clientIp: "",
      replayOf: of,
    });
    if (!recording) return null;
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const stream = hasBody ? new Response(body).body : null;
    const request = { method: head.parts[0]!, body: stream, bodyUsed: false, signal };
    const answer = this.#tunnel.counted(request, this.#admit(request, head, recording));
    await consumeResponse(answer, giveUp);
    return recording.id;
  }

  /** Waits for an agent that was there a moment ago, if one was. */
  async waitForAgent(): Promise<boolean> {
    const { agents, agentTrace, lifetime } = this.#tunnel;
    if (lifetime.isStopped) return false;
    const now = Date.now();
    await this.#parking.wait(getGracePeriodLeftMs(agentTrace.startGracePeriod(now), now));
    return agents.current(Date.now()) !== undefined;
  }

  /** An agent is there, or none is to be waited for. */
  releaseParked(): void {
    this.#parking.release();
  }

  /** Resolves when nothing is in flight, or after the time that it gets. */
  async waitUntilIdle(): Promise<void> {
    const until = Date.now() + DRAIN_MAX_MS;
    while (this.#inFlight > 0 && Date.now() < until) await scheduler.wait(20);
  }

  closeSockets(): void {
    for (const socket of this.#ctx.getWebSockets(VISITOR_TAG)) socket.close(1012, "restart");
  }

  // ── Called by visitors' WebSockets ──

  onMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.#sockets.get(socket)?.onMessage(message);
  }

  /** @returns whether it was a visitor's. */
  onSocketClosed(socket: WebSocket, code: number, reason: string): boolean {
    // A Close that wakes the object: its socket is not among the open ones that the constructor found.
    if (!this.#sockets.has(socket)) this.#resume(socket);
    const visitor = this.#sockets.get(socket);
    if (!visitor) return false;
    this.#sockets.delete(socket);
    visitor.onClosed(code, reason);
    return true;
  }

  // ── Inside ──

  async #visitGated(
    request: Request,
    head: RequestHead,
    address: string,
    recording: Recording | null,
  ): Promise<Response> {
    const { gatekeeper } = this.#tunnel;
    const refusal = await gatekeeper.admitOrRefuse(request, head, address);
    if (refusal) recording?.refuse(refusal.code);
    const answer = refusal ? refuse(refusal) : await this.#admit(request, head, recording);
    const news = gatekeeper.takePolicyUpdate(head);
    // The edge takes the line out again, which it can't without losing the socket.
    if (news !== null && answer.status !== 101) answer.headers.set(GATES_HEADER, news);
    return answer;
  }

  #admit(request: ForwardableRequest, head: RequestHead, recording: Recording | null): Promise<Response> {
    this.#startSilenceCheck();
    this.#tunnel.usage.countRequest();
    return new Promise((resolve) =>
      this.#forward({ request, head, recording, resolve, attempts: 0 }),
    );
  }

  /** To the agent that is there, or to the one that comes back in time. */
  #forward(visit: PendingRequest): void {
    const link = this.#tunnel.agents.current(Date.now());
    if (!link) {
      void this.#forwardParked(visit);
      return;
    }
    visit.attempts += 1;
    if (visit.head.isSocket) {
      visit.resolve(this.#openSocket(link, visit));
      return;
    }
    this.#inFlight += 1;
    const { request, head, recording } = visit;
    new Exchange(link, request, head, this.#surroundings, recording, (outcome) =>
      this.#settle(visit, outcome),
    );
  }

  async #forwardParked(visit: PendingRequest): Promise<void> {
    const isBack = await this.waitForAgent();
    // A visitor who left while waiting is not served, and the answer reaches nobody.
    if (visit.request.signal.aborted) visit.recording?.abort();
    else if (isBack) return this.#forward(visit);
    visit.resolve(this.#refuseOffline(visit.recording));
  }

  #settle(visit: PendingRequest, outcome: ExchangeOutcome): void {
    if (outcome instanceof Response) return visit.resolve(outcome);
    const { request } = visit;
    const again = outcome === "refused" || (outcome === "lost" && Exchange.canRepeat(request));
    if (again && visit.attempts === 1 && !request.bodyUsed) return this.#forward(visit);
    const code = outcome === "lost" || outcome === "refused" ? "agent_offline" : outcome;
    visit.recording?.fail(code);
    visit.resolve(refuse({ code }));
  }

  async #openSocket(link: AgentLink, { head, recording }: PendingRequest): Promise<Response> {
    const handshake = new SocketHandshake(link, head, recording);
    const outcome = await handshake.outcome;
    if (typeof outcome === "string") {
      recording?.fail(outcome);
      return refuse({ code: outcome });
    }
    if (outcome instanceof Response) return outcome;
    const { 0: client, 1: server } = new WebSocketPair();
    const { agentId } = link.attachment;
    this.#ctx.acceptWebSocket(server, [VISITOR_TAG]);
    const stream = handshake.id;
    const capture = recording?.id ?? null;
    const attachment: VisitorAttachment = { kind: "visitor", agentId, stream, capture };
    server.serializeAttachment(attachment);
    const visitor = new VisitorSocket(link, stream, server, this.#tunnel.usage, recording);
    this.#sockets.set(server, visitor);
    handshake.handOver(visitor);
    return new Response(null, { status: 101, webSocket: client, headers: outcome.headers });
  }

  /** Puts a visitor's WebSocket back in its place after hibernation. */
  #resume(socket: WebSocket): void {
    const attachment = readAttachment(socket);
    if (attachment.kind !== "visitor") return;
    const { agentId, stream, capture } = attachment;
    const recording = capture === null ? null : this.#tunnel.listCaptures.resumeRecording(capture);
    const link = this.#tunnel.agents.current(Date.now());
    if (link?.attachment.agentId !== agentId) {
      recording?.fail("agent_offline");
      return closeQuietly(socket, 1012, "the tunnel's agent disconnected");
    }
    const visitor = new VisitorSocket(link, stream, socket, this.#tunnel.usage, recording);
    this.#sockets.set(socket, visitor);
    link.resume(stream, visitor);
  }

  #refuseOffline(recording: Recording | null): Response {
    const { lifetime } = this.#tunnel;
    recording?.fail("agent_offline");
    if (lifetime.isRetired) return refuse({ code: "tunnel_not_found" });
    if (lifetime.isStopped) return refuse({ code: "agent_offline", message: STOPPED });
    return refuse(withRetryAfter("agent_offline", RECONNECT_MAX_MS));
  }

  /** While requests are in flight, an agent that falls silent must not keep them. */
  #startSilenceCheck(): void {
    this.#silenceCheck ??= setInterval(() => {
      this.#tunnel.agents.current(Date.now());
      if (this.#inFlight > 0 || this.#silenceCheck === undefined) return;
      clearInterval(this.#silenceCheck);
      this.#silenceCheck = undefined;
    }, HEARTBEAT_INTERVAL_MS / 5);
  }
}
