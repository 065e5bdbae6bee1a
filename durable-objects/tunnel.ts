/**
 * One tunnel, live: the agent that serves it, visitors' requests on their way, its counters.
 *
 * The row in PostgreSQL says that the tunnel exists and whose it is; this object says who is connected.
 * Who may connect was decided before: only the API hands agents over, only the edge forwards visitors.
 * Fields hold work in flight, and an object with work in flight does not hibernate; what must outlive that
 * is in the sockets' attachments or in storage.
 */
import { DurableObject } from "cloudflare:workers";
import { FRAME } from "../protocol/wire/frames.ts";
import { RECONNECT_MAX_MS } from "../protocol/limits.ts";
import type {
  CaptureEvent,
  CaptureFilter,
  CaptureSummary,
  Capturing,
  Changes,
  ReplayOutcome,
} from "../protocol/schemas/inspector/captures.ts";
import type { TunnelUsage } from "../protocol/relay/link.ts";
import type { ObjectBindings } from "./bindings.ts";
import type { Attendance, TunnelReport, Watch, TunnelRpc } from "./rpc.ts";
import { answerClose } from "./close-quietly.ts";
import { checksOf } from "../access/checks.ts";
import { refuse, retryAfter } from "../access/refusal.ts";
import type { SettingsInput } from "../access/settings.ts";
import {
  Admission,
  ADMISSION_HEADER,
  AGENT_CONNECT_URL,
  AGENT_STREAMS_URL,
  attachmentOf,
} from "./tunnel/agents/admission.ts";
import { Alarm } from "./tunnel/alarm.ts";
import { AgentTrace } from "./tunnel/agents/agent-trace.ts";
import { Agents } from "./tunnel/agents/agents.ts";
import { AttendanceBook } from "./tunnel/agents/attendance.ts";
import { Captures } from "./tunnel/captures/captures.ts";
import { CaptureFeed } from "./tunnel/captures/feed.ts";
import { replayOf } from "./tunnel/captures/replay.ts";
import { CustomHosts, type Residence } from "./tunnel/proxy/custom-hosts.ts";
import { Gatekeeper, type Maintenance } from "./tunnel/proxy/gatekeeper.ts";
import { Lifetime, type Stopping } from "./tunnel/agents/lifetime.ts";
import { Reports, type Presence } from "./tunnel/metrics/reports.ts";
import { Clients } from "./tunnel/tcp/clients.ts";
import { RelayControl } from "./tunnel/tcp/relay-control.ts";
import { Visitors } from "./tunnel/proxy/visitors.ts";

export class Tunnel extends DurableObject<ObjectBindings> implements TunnelRpc {
  readonly #agents: Agents;
  readonly #agentTrace: AgentTrace;
  readonly #attendance: AttendanceBook;
  readonly #feed: CaptureFeed;
  readonly #lifetime: Lifetime;
  readonly #gatekeeper: Gatekeeper;
  readonly #customHosts: CustomHosts;
  readonly #alarm: Alarm;
  readonly #reports: Reports;
  readonly #captures: Captures;
  readonly #visitors: Visitors;
  readonly #relay: RelayControl;
  readonly #clients: Clients;
  #draining = false;

  constructor(ctx: DurableObjectState, env: ObjectBindings) {
    super(ctx, env);
    this.#customHosts = new CustomHosts(ctx.storage);
    this.#lifetime = new Lifetime(ctx.storage.kv);
    this.#gatekeeper = new Gatekeeper(ctx.storage, checksOf(env));
    this.#agentTrace = new AgentTrace(ctx.storage.kv);
    this.#agents = new Agents(ctx, (meant) => this.#agentLeft(meant));
    this.#attendance = new AttendanceBook(ctx.storage.kv, env.ORGANIZATION, {
      present: () => this.#agents.current(Date.now())?.attachment,
      answered: (watch) => this.setWatch(watch),
    });
    this.#feed = new CaptureFeed(ctx.storage.kv, () => this.#attendance.home);
    this.#alarm = new Alarm(ctx.storage);
    this.#reports = new Reports(ctx.storage.kv, this.#alarm, env.ROWS, {
      presence: () => this.#presence(),
      credential: () => this.#agents.credential,
      endsAtMs: () => this.#lifetime.endsAtMs,
    });
    this.#captures = new Captures(ctx.storage, {
      tunnelId: () => ctx.id.name ?? this.#reports.tunnelId,
      alarm: this.#alarm,
      feed: this.#feed,
      isOver: this.#lifetime.isOver,
    });
    this.#visitors = new Visitors(ctx, {
      agents: this.#agents,
      agentTrace: this.#agentTrace,
      lifetime: this.#lifetime,
      gatekeeper: this.#gatekeeper,
      customHosts: this.#customHosts,
      captures: this.#captures,
      usage: this.#reports.usage,
      counted: (request, answer) => this.#reports.counted(request, answer),
      trust: { hosted: env.HOSTED === "true", trustProxy: env.TRUST_PROXY === "true" },
      proto: env.PUBLIC_SCHEME ?? "http",
    });
    this.#relay = new RelayControl(ctx.storage.kv, env.RELAY, () => this.#reports.tunnelId);
    this.#clients = new Clients(ctx, {
      agents: this.#agents,
      alarm: this.#alarm,
      reports: this.#reports,
      allowedCidrs: () => this.#gatekeeper.allowedCidrs,
      agentReturns: () => this.#visitors.agentReturns(),
    });
  }

  // ── Called by workers ──

  /** A visitor's request from the edge, or the connection of an agent or a client from the API. */
  override fetch(request: Request): Response | Promise<Response> {
    if (request.url === AGENT_CONNECT_URL) return this.#acceptAgent(request);
    if (request.url === AGENT_STREAMS_URL) return this.#acceptClient(request);
    // What carries TCP has no HTTP visitors.
    if (this.#relay.isTcp) return refuse({ code: "tunnel_not_found" });
    return this.#reports.counted(request, this.#visit(request));
  }

  /** Permanent: ids are never used again, so a retired tunnel refuses everybody for ever. */
  async retire(why: "deleted" | "expired" = "deleted"): Promise<void> {
    this.#lifetime.retire();
    this.#gatekeeper.remove();
    if (why === "expired") this.#agents.closeAll("tunnel_expired", "the tunnel's time is over");
    else this.#agents.closeAll("tunnel_deleted", "the tunnel was deleted");
    this.#visitors.waitNoLonger();
    this.#clients.endAll("tunnel_deleted", "the tunnel was deleted or has expired");
    await this.#captures.retire();
    await this.#relay.revoke(why === "expired" ? "tunnel_expired" : "tunnel_deleted");
  }

  /** From when this returns on, a stopped tunnel has no agent, and nobody waits for one. */
  async setStopping(stopping: Stopping): Promise<void> {
    if (this.#lifetime.isOver) return;
    this.#lifetime.setStopping(stopping);
    if (!this.#lifetime.isStopped) return;
    this.#agents.closeAll("tunnel_stopped", "the tunnel was stopped");
    this.#visitors.waitNoLonger();
    await this.#relay.revoke("tunnel_stopped");
  }

  /** For a tunnel that no agent may ever come to. */
  endBy(tunnelId: string, atMs: number): void {
    this.#reports.identify(tunnelId);
    this.#lifetime.endBy(atMs);
    this.#reports.awaitEnd();
  }

  /** What its owner set, after the commit. From when this returns on, it holds for every request. */
  publishSettings(settings: SettingsInput): Promise<void> {
    if (this.#lifetime.isOver) return Promise.resolve();
    this.#gatekeeper.publish(settings);
    this.#clients.enforceAllowlist();
    return this.#relay.setAllowedCidrs(() => this.#gatekeeper.allowedCidrs);
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
  async revokeCredential(tokenNonce: string): Promise<void> {
    this.#agents.closeAll("unauthorized", "the token was revoked", { tokenNonce });
    this.#clients.endToken(tokenNonce);
    await this.#relay.revoke("unauthorized", tokenNonce);
  }

  /** The same where its budget is spent. */
  async stopSpending(tokenNonce: string): Promise<void> {
    const explanation = "the token's budget of this month is spent";
    this.#agents.closeAll("BUDGET_EXCEEDED", explanation, { tokenNonce });
    await this.#relay.revoke("BUDGET_EXCEEDED", tokenNonce);
  }

  /** Ends one agent's connection. From when this returns on, the organization lists it no more. */
  async endConnection(agentId: string): Promise<void> {
    const explanation = "somebody of the organization ended the connection";
    const agent = this.#agents.current(Date.now())?.attachment;
    this.#agents.closeAll("connection_ended", explanation, { agentId });
    const isServing = agent?.agentId === agentId;
    await Promise.all([
      this.#attendance.tell(),
      isServing ? this.#relay.revoke("connection_ended", agent.tokenNonce) : this.#relay.flush(),
    ]);
  }

  /** What a relay carried for this tunnel, in totals of one association: the same again changes nothing. */
  relayed(usage: TunnelUsage): void {
    this.#reports.identify(usage.tunnelId);
    this.#reports.relayed(usage);
  }

  /** Who serves now, for the organization. */
  attendance(): Attendance | null {
    return this.#attendance.asked();
  }

  /** What of visitors' requests is kept, after the commit: from the next request on. */
  publishCapturing(capturing: Capturing): void {
    if (!this.#lifetime.isOver) this.#captures.publish(capturing);
  }

  /** Newest first. */
  captures(filter: CaptureFilter): Promise<CaptureSummary[]> {
    return this.#captures.list(filter);
  }

  capture(id: string): CaptureEvent | null {
    return this.#captures.event(id);
  }

  /** What came by then. */
  clearCaptures(untilMs: number): Promise<void> {
    return this.#captures.clear(untilMs);
  }

  /** Sends a captured request to the agent that is there, and returns when that is over. */
  async replay(id: string, changes: Changes = {}): Promise<ReplayOutcome> {
    if (!this.#captures.allowsReplay) return { refused: "replay_disabled" };
    const capture = this.#captures.find(id);
    if (!capture) return { refused: "not_found" };
    const replay = replayOf(capture, changes);
    if (typeof replay === "string") return { refused: replay };
    if (!this.#agents.current(Date.now())) return { refused: "agent_offline" };
    const capturedAs = await this.#visitors.replay(replay, id);
    return capturedAs === null ? { refused: "not_found" } : { id: capturedAs };
  }

  /** Whether somebody watches, as the organization says. */
  setWatch(watch: Watch): void {
    this.#feed.setWatch(watch);
  }

  /** What is true now, also told to the row: for whoever finds the row's news old. */
  confirm(): Promise<TunnelReport | null> {
    return this.#reports.send();
  }

  /**
   * The server stops: agents are told to come back later, what is in flight may finish, and what was recorded
   * and counted is on disk when this returns.
   */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#visitors.waitNoLonger();
    this.#agents.current(Date.now())?.send((writer) => {
      writer.text(FRAME.goingAway, 0, 0, "the server restarts");
    });
    await this.#visitors.drained();
    this.#clients.endAll("going_away", "the server restarts");
    this.#agents.closeAll("going_away", "the server restarts");
    this.#visitors.closeSockets();
    this.#captures.flush();
    await this.#alarm.attempt(() => this.#reports.due());
    await this.ctx.storage.sync();
  }

  // ── Called by agents and by visitors' WebSockets ──

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    const attachment = attachmentOf(socket);
    if (attachment.kind === "visitor") return this.#visitors.message(socket, message);
    if (attachment.kind === "client") return this.#clients.message(socket, message);
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
    answerClose(socket, code, reason);
  }

  override webSocketError(socket: WebSocket): void {
    this.#socketGone(socket, 1006, "");
  }

  // ── Called by the platform ──

  override async alarm(): Promise<void> {
    this.#alarm.wentOff();
    const { tunnelId } = this.#reports;
    await this.#alarm.attempt(() => this.#lifetime.endIfDue(this.env.ROWS, tunnelId));
    await Promise.all([
      this.#alarm.attempt(() => this.#captures.due()),
      this.#alarm.attempt(() => this.#reports.due()),
      this.#alarm.attempt(() => this.#attendance.tell()),
      this.#alarm.attempt(() => this.#clients.due()),
      this.#alarm.attempt(() => this.#relay.flush()),
    ]);
  }

  // ── Inside: agents ──

  #acceptAgent(request: Request): Response {
    if (this.#lifetime.isOver) return refuse({ code: "tunnel_not_found" });
    if (this.#lifetime.isStopped) return refuse({ code: "conflict" });
    if (this.#draining) return refuse({ code: "unavailable" });
    const admission = Admission.parse(JSON.parse(request.headers.get(ADMISSION_HEADER) ?? ""));
    this.#reports.identify(admission.tunnelId, admission.orgId);
    const { retention } = admission;
    if (retention) this.#captures.retain(retention.version, retention.days);
    if (admission.endsAtMs !== null) this.#lifetime.endBy(admission.endsAtMs);
    if (admission.relay) this.#relay.setPort(admission.relay);
    const { 0: client, 1: server } = new WebSocketPair();
    this.#agents.accept(server, admission);
    const protocol = request.headers.get("sec-websocket-protocol");
    const headers = protocol === null ? undefined : { "sec-websocket-protocol": protocol };
    return new Response(null, { status: 101, webSocket: client, headers });
  }

  #acceptClient(request: Request): Response {
    if (this.#lifetime.isOver) return refuse({ code: "tunnel_not_found" });
    if (this.#lifetime.isStopped) return refuse({ code: "conflict" });
    return this.#draining ? refuse({ code: "unavailable" }) : this.#clients.accept(request);
  }

  #agentArrived(tokenNonce: string): void {
    this.#reports.charge(tokenNonce);
    this.#agentTrace.arrived();
    this.#visitors.waitNoLonger();
    this.#reports.now();
  }

  /** `meant` when the agent said that it goes: then nobody waits for its return. */
  #agentLeft(meant: boolean): void {
    this.#reports.charge(null);
    this.#agentTrace.left(meant, Date.now());
    // A restart of the server is none of the owner's doing.
    if (!this.#draining) this.#gatekeeper.endMaintenance();
    this.#reports.now();
  }

  #socketGone(socket: WebSocket, code: number, reason: string): void {
    if (attachmentOf(socket).kind === "client") return this.#clients.closed(socket);
    if (this.#visitors.socketGone(socket, code, reason)) return;
    this.#agents.closed(socket);
    // A Close that wakes the object finds no link: what is left of its agent is that one was there.
    if (this.#agentTrace.isThere && !this.#agents.current(Date.now())) this.#agentLeft(false);
  }

  // ── Inside: visitors ──

  #visit(request: Request): Promise<Response> {
    if (!this.#draining) return this.#visitors.visit(request);
    return Promise.resolve(refuse(retryAfter("unavailable", RECONNECT_MAX_MS)));
  }

  // ── Inside: news ──

  #presence(): Presence {
    const agentConnected = this.#agents.current(Date.now()) !== undefined;
    const lastSeenAtMs = agentConnected ? Date.now() : this.#agentTrace.goneAtMs;
    return { agentConnected, lastSeenAtMs, maintenance: this.#gatekeeper.isInMaintenance };
  }
}
