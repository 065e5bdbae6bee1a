/**
 * One tunnel, live: the agent that serves it, visitors' requests on their way, its counters.
 *
 * The row in PostgreSQL says that the tunnel exists and whose it is; this object says who is connected.
 * Who may connect was decided before: only the API hands agents over, only the edge forwards visitors.
 * Fields hold work in flight, and an object with work in flight does not hibernate; what must outlive that
 * is in the sockets' attachments or in storage.
 */
import { DurableObject } from "cloudflare:workers";
import { clientAddress, type AddressTrust } from "../protocol/client-address.ts";
import { FRAME } from "../protocol/frames.ts";
import { DRAIN_MAX_MS, HEARTBEAT_INTERVAL_MS, RECONNECT_MAX_MS } from "../protocol/limits.ts";
import type { ObjectBindings, TunnelReport } from "./bindings.ts";
import { checksOf } from "./gates/checks.ts";
import { refuse, retryAfter } from "./gates/refusal.ts";
import { GATES_HEADER, type SettingsInput } from "./gates/settings.ts";
import {
  Admission,
  ADMISSION_HEADER,
  AGENT_CONNECT_URL,
  attachmentOf,
  type VisitorAttachment,
} from "./tunnel/admission.ts";
import type { AgentLink } from "./tunnel/agent-link.ts";
import { Agents } from "./tunnel/agents.ts";
import { CustomHosts, type Residence } from "./tunnel/custom-hosts.ts";
import { Exchange, type Outcome, type Surroundings } from "./tunnel/exchange.ts";
import { Gatekeeper, type Maintenance } from "./tunnel/gatekeeper.ts";
import { requestHead, type RequestHead } from "./tunnel/heads.ts";
import { Lifetime, type Stopping } from "./tunnel/lifetime.ts";
import { Parking, parkingTime, type LastAgent } from "./tunnel/parking.ts";
import { Reports, type Presence } from "./tunnel/reports.ts";
import { SocketHandshake } from "./tunnel/socket-handshake.ts";
import { VisitorSocket } from "./tunnel/visitor-socket.ts";

const VISITOR_TAG = "visitor";
const LAST_AGENT_KEY = "last-agent";
/** For visitors. */
const STOPPED = "The owner of this tunnel has stopped it, and can start it again.";

/** One visitor's request, until it is answered. */
interface Visit {
  request: Request;
  head: RequestHead;
  resolve(answer: Response | Promise<Response>): void;
  /** To how many agents it was given. */
  attempts: number;
}

export class Tunnel extends DurableObject<ObjectBindings> {
  readonly #trust: AddressTrust;
  readonly #proto: string;
  readonly #agents: Agents;
  readonly #lifetime: Lifetime;
  readonly #gatekeeper: Gatekeeper;
  readonly #customHosts: CustomHosts;
  readonly #parking = new Parking();
  readonly #reports: Reports;
  readonly #surroundings: Surroundings;
  readonly #visitors = new Map<WebSocket, VisitorSocket>();
  #inFlight = 0;
  #watch: ReturnType<typeof setInterval> | undefined;
  #draining = false;

  constructor(ctx: DurableObjectState, env: ObjectBindings) {
    super(ctx, env);
    this.#trust = { hosted: env.HOSTED === "true", trustProxy: env.TRUST_PROXY === "true" };
    this.#proto = env.PUBLIC_SCHEME ?? "http";
    this.#customHosts = new CustomHosts(ctx.storage);
    this.#lifetime = new Lifetime(ctx.storage.kv);
    this.#gatekeeper = new Gatekeeper(ctx.storage, checksOf(env));
    this.#agents = new Agents(ctx, (meant) => this.#agentLeft(meant));
    this.#reports = new Reports(ctx.storage, env.ROWS, {
      presence: () => this.#presence(),
      credential: () => this.#agents.credential,
      endsAtMs: () => this.#lifetime.endsAtMs,
    });
    this.#surroundings = {
      usage: this.#reports.usage,
      hosted: this.#trust.hosted,
      over: () => void (this.#inFlight -= 1),
    };
    for (const socket of ctx.getWebSockets(VISITOR_TAG)) this.#resumeVisitor(socket);
  }

  // ── Called by workers ──

  /** A visitor's request from the edge, or an agent's connection from the API. */
  override fetch(request: Request): Response | Promise<Response> {
    if (request.url === AGENT_CONNECT_URL) return this.#acceptAgent(request);
    return this.#visit(request);
  }

  /** Permanent: ids are never used again, so a retired tunnel refuses everybody for ever. */
  retire(why: "deleted" | "expired" = "deleted"): void {
    this.#lifetime.retire();
    this.#gatekeeper.remove();
    if (why === "expired") this.#agents.closeAll("tunnel_expired", "the tunnel's time is over");
    else this.#agents.closeAll("tunnel_deleted", "the tunnel was deleted");
    this.#parking.release();
  }

  /** From when this returns on, a stopped tunnel has no agent, and nobody waits for one. */
  setStopping(stopping: Stopping): void {
    if (this.#lifetime.isOver) return;
    this.#lifetime.setStopping(stopping);
    if (!this.#lifetime.isStopped) return;
    this.#agents.closeAll("tunnel_stopped", "the tunnel was stopped");
    this.#parking.release();
  }

  /** For a tunnel that no agent may ever come to. */
  endBy(tunnelId: string, atMs: number): void {
    this.#reports.identify(tunnelId);
    this.#lifetime.endBy(atMs);
    this.#reports.awaitEnd();
  }

  /** What its owner set, after the commit. From when this returns on, it holds for every request. */
  publishSettings(settings: SettingsInput): void {
    if (!this.#lifetime.isOver) this.#gatekeeper.publish(settings);
  }

  setMaintenance(tunnelId: string, maintenance: Maintenance): void {
    if (this.#lifetime.isOver) return;
    this.#gatekeeper.setMaintenance(maintenance);
    this.#reports.identify(tunnelId);
    this.#reports.now();
  }

  /** Whether a custom domain leads here, after the commit. */
  setCustomHost(host: string, residence: Residence): void {
    this.#customHosts.set(host, residence);
  }

  /** What a visitor brings back from signing in is good once. */
  spendTicket(id: string, endsAtMs: number): boolean {
    return !this.#lifetime.isOver && this.#gatekeeper.spendTicket(id, endsAtMs);
  }

  /** Ends the connections of one capability token. */
  revokeCredential(tokenNonce: string): void {
    this.#agents.closeAll("unauthorized", "the token was revoked", tokenNonce);
  }

  /** The same where its budget is spent. */
  stopSpending(tokenNonce: string): void {
    const explanation = "the token's budget of this month is spent";
    this.#agents.closeAll("BUDGET_EXCEEDED", explanation, tokenNonce);
  }

  /** What is true now, also told to the row: for whoever finds the row's news old. */
  confirm(): Promise<TunnelReport | null> {
    return this.#reports.send();
  }

  /** The server stops: agents are told to come back later, and what is in flight may finish. */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#parking.release();
    this.#agents.current(Date.now())?.send((writer) => {
      writer.text(FRAME.goingAway, 0, 0, "the server restarts");
    });
    const until = Date.now() + DRAIN_MAX_MS;
    while (this.#inFlight > 0 && Date.now() < until) await scheduler.wait(20);
    this.#agents.closeAll("going_away", "the server restarts");
    for (const socket of this.ctx.getWebSockets(VISITOR_TAG)) socket.close(1012, "restart");
  }

  // ── Called by agents and by visitors' WebSockets ──

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    const attachment = attachmentOf(socket);
    if (attachment.kind === "visitor") {
      this.#visitors.get(socket)?.message(message);
      return;
    }
    if (typeof message === "string") {
      this.#agents.expel(socket, "text is for heartbeats only");
      return;
    }
    if (!attachment.hello) {
      const link = this.#agents.welcome(socket, attachment, message);
      if (link) this.#agentArrived(attachment.tokenNonce);
      return;
    }
    const link = this.#agents.linkOf(socket);
    // A connection that was replaced has nothing more to say that anybody waits for.
    if (link && !link.receive(message)) this.#agents.expel(socket, "unreadable frame");
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string): void {
    this.#socketGone(socket, code, reason);
    // The hibernation API does not answer a Close frame; these codes mean that none arrived.
    if (code !== 1005 && code !== 1006 && code !== 1015) closeQuietly(socket, code, reason);
    else if (code === 1005) closeQuietly(socket);
  }

  override webSocketError(socket: WebSocket): void {
    this.#socketGone(socket, 1006, "");
  }

  // ── Called by the platform ──

  override async alarm(): Promise<void> {
    try {
      await this.#lifetime.endIfDue(this.env.ROWS, this.#reports.tunnelId);
    } finally {
      await this.#reports.due();
    }
  }

  // ── Inside: agents ──

  #acceptAgent(request: Request): Response {
    if (this.#lifetime.isOver) return refuse({ code: "tunnel_not_found" });
    if (this.#lifetime.isStopped) return refuse({ code: "conflict" });
    if (this.#draining) return refuse({ code: "unavailable" });
    const admission = Admission.parse(JSON.parse(request.headers.get(ADMISSION_HEADER) ?? ""));
    this.#reports.identify(admission.tunnelId);
    if (admission.endsAtMs !== null) this.#lifetime.endBy(admission.endsAtMs);
    const { 0: client, 1: server } = new WebSocketPair();
    this.#agents.accept(server, admission);
    const protocol = request.headers.get("sec-websocket-protocol");
    const headers = protocol === null ? undefined : { "sec-websocket-protocol": protocol };
    return new Response(null, { status: 101, webSocket: client, headers });
  }

  #agentArrived(tokenNonce: string): void {
    this.#reports.charge(tokenNonce);
    this.ctx.storage.kv.put<LastAgent>(LAST_AGENT_KEY, { goneAtMs: null });
    this.#parking.release();
    this.#reports.now();
  }

  /** `meant` when the agent said that it goes: then nobody waits for its return. */
  #agentLeft(meant: boolean): void {
    this.#reports.charge(null);
    if (meant) this.ctx.storage.kv.delete(LAST_AGENT_KEY);
    else this.ctx.storage.kv.put<LastAgent>(LAST_AGENT_KEY, { goneAtMs: Date.now() });
    // A restart of the server is none of the owner's doing.
    if (!this.#draining) this.#gatekeeper.endMaintenance();
    this.#reports.now();
  }

  #socketGone(socket: WebSocket, code: number, reason: string): void {
    // A Close that wakes the object: its socket is not among the open ones that the constructor found.
    if (!this.#visitors.has(socket)) this.#resumeVisitor(socket);
    const visitor = this.#visitors.get(socket);
    if (visitor) {
      this.#visitors.delete(socket);
      visitor.closed(code, reason);
      return;
    }
    this.#agents.closed(socket);
    // The same of an agent's: what is left of it is that one was there.
    const wasThere = this.ctx.storage.kv.get<LastAgent>(LAST_AGENT_KEY)?.goneAtMs === null;
    if (wasThere && !this.#agents.current(Date.now())) this.#agentLeft(false);
  }

  // ── Inside: visitors ──

  #visit(request: Request): Promise<Response> {
    if (this.#draining) {
      return Promise.resolve(refuse(retryAfter("unavailable", RECONNECT_MAX_MS)));
    }
    if (this.#customHosts.hasLeft(request)) {
      return Promise.resolve(refuse({ code: "tunnel_not_found" }));
    }
    const address = clientAddress(request, this.#trust);
    const head = requestHead(request, { address, proto: this.#proto });
    if (this.#gatekeeper.isOpen && head.judged === null) return this.#letIn(request, head);
    return this.#visitGated(request, head, address);
  }

  async #visitGated(request: Request, head: RequestHead, address: string): Promise<Response> {
    const refusal = await this.#gatekeeper.refusalOf(request, head, address);
    const answer = refusal ? refuse(refusal) : await this.#letIn(request, head);
    const news = this.#gatekeeper.newsFor(head);
    // The edge takes the line out again, which it can't without losing the socket.
    if (news !== null && answer.status !== 101) answer.headers.set(GATES_HEADER, news);
    return answer;
  }

  #letIn(request: Request, head: RequestHead): Promise<Response> {
    this.#watchAgent();
    this.#reports.usage.countRequest();
    return new Promise((resolve) => this.#forward({ request, head, resolve, attempts: 0 }));
  }

  /** To the agent that is there, or to the one that comes back in time. */
  #forward(visit: Visit): void {
    const link = this.#agents.current(Date.now());
    if (!link) {
      void this.#forwardParked(visit);
      return;
    }
    visit.attempts += 1;
    if (visit.head.isSocket) {
      visit.resolve(this.#openSocket(link, visit.head));
      return;
    }
    this.#inFlight += 1;
    const { request, head } = visit;
    new Exchange(link, request, head, this.#surroundings, (outcome) =>
      this.#settle(visit, outcome),
    );
  }

  async #forwardParked(visit: Visit): Promise<void> {
    if (await this.#agentReturns()) this.#forward(visit);
    else visit.resolve(this.#refuseOffline());
  }

  #settle(visit: Visit, outcome: Outcome): void {
    if (outcome instanceof Response) return visit.resolve(outcome);
    const { request } = visit;
    const again = outcome === "refused" || (outcome === "lost" && Exchange.mayRepeat(request));
    if (again && visit.attempts === 1 && !request.bodyUsed) return this.#forward(visit);
    const code = outcome === "lost" || outcome === "refused" ? "agent_offline" : outcome;
    visit.resolve(refuse({ code }));
  }

  async #openSocket(link: AgentLink, head: RequestHead): Promise<Response> {
    const handshake = new SocketHandshake(link, head.parts, head.flags);
    const outcome = await handshake.outcome;
    if (typeof outcome === "string") return refuse({ code: outcome });
    if (outcome instanceof Response) return outcome;
    const { 0: client, 1: server } = new WebSocketPair();
    const { agentId } = link.attachment;
    this.ctx.acceptWebSocket(server, [VISITOR_TAG]);
    const attachment: VisitorAttachment = { kind: "visitor", agentId, stream: handshake.id };
    server.serializeAttachment(attachment);
    const visitor = new VisitorSocket(link, handshake.id, server, this.#reports.usage);
    this.#visitors.set(server, visitor);
    handshake.handOver(visitor);
    return new Response(null, { status: 101, webSocket: client, headers: outcome.headers });
  }

  #resumeVisitor(socket: WebSocket): void {
    const attachment = attachmentOf(socket);
    if (attachment.kind !== "visitor") return;
    const link = this.#agents.current(Date.now());
    if (link?.attachment.agentId !== attachment.agentId) {
      return closeQuietly(socket, 1012, "the tunnel's agent disconnected");
    }
    const visitor = new VisitorSocket(link, attachment.stream, socket, this.#reports.usage);
    this.#visitors.set(socket, visitor);
    link.resume(attachment.stream, visitor);
  }

  /** Waits for an agent that was there a moment ago, if one was. */
  async #agentReturns(): Promise<boolean> {
    if (this.#lifetime.isStopped) return false;
    const now = Date.now();
    let lastAgent = this.ctx.storage.kv.get<LastAgent>(LAST_AGENT_KEY);
    if (lastAgent?.goneAtMs === null) {
      // The object restarted and lost its agent on the way: the clock starts with who asks first.
      lastAgent = { goneAtMs: now };
      this.ctx.storage.kv.put<LastAgent>(LAST_AGENT_KEY, lastAgent);
    }
    await this.#parking.wait(parkingTime(lastAgent, now));
    return this.#agents.current(Date.now()) !== undefined;
  }

  #refuseOffline(): Response {
    if (this.#lifetime.isOver) return refuse({ code: "tunnel_not_found" });
    if (this.#lifetime.isStopped) return refuse({ code: "agent_offline", message: STOPPED });
    return refuse(retryAfter("agent_offline", RECONNECT_MAX_MS));
  }

  /** While requests are in flight, an agent that falls silent must not keep them. */
  #watchAgent(): void {
    this.#watch ??= setInterval(() => {
      this.#agents.current(Date.now());
      if (this.#inFlight > 0 || this.#watch === undefined) return;
      clearInterval(this.#watch);
      this.#watch = undefined;
    }, HEARTBEAT_INTERVAL_MS / 5);
  }

  #presence(): Presence {
    const agentConnected = this.#agents.current(Date.now()) !== undefined;
    const goneAtMs = this.ctx.storage.kv.get<LastAgent>(LAST_AGENT_KEY)?.goneAtMs ?? null;
    const lastSeenAtMs = agentConnected ? Date.now() : goneAtMs;
    return { agentConnected, lastSeenAtMs, maintenance: this.#gatekeeper.isInMaintenance };
  }
}

function closeQuietly(socket: WebSocket, code?: number, reason?: string): void {
  try {
    if (code === undefined) socket.close();
    else socket.close(code, reason);
  } catch {
    // Closed by us already.
  }
}
