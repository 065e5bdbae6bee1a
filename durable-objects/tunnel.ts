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
  CapturePolicy,
  ReplayChanges,
  ReplayOutcome,
} from "../protocol/schemas/inspector/captures.ts";
import type { TunnelUsage } from "../protocol/relay/link.ts";
import type { ObjectBindings } from "./bindings.ts";
import type { Presence, TunnelReport, WatchStatus, TunnelRpc } from "./rpc.ts";
import { answerClose } from "./close-quietly.ts";
import { buildAuthenticators } from "../access/authenticators.ts";
import { refuse, withRetryAfter } from "../access/refusal.ts";
import type { SettingsInput } from "../access/settings.ts";
import {
  Admission,
  ADMISSION_HEADER,
  AGENT_CONNECT_URL,
  AGENT_STREAMS_URL,
  readAttachment,
} from "./tunnel/agents/admission.ts";
import { Alarm } from "./tunnel/alarm.ts";
import { LastAgent } from "./tunnel/agents/last-agent.ts";
import { Agents } from "./tunnel/agents/agents.ts";
import { PresenceReporter } from "./tunnel/agents/presence-reporter.ts";
import { Captures } from "./tunnel/captures/captures.ts";
import { CaptureFeed } from "./tunnel/captures/feed.ts";
import { buildReplay } from "./tunnel/captures/replay.ts";
import { CustomHosts, type CustomHostState } from "./tunnel/proxy/custom-hosts.ts";
import { AccessPolicy, type Maintenance } from "./tunnel/proxy/access-policy.ts";
import { Lifetime, type StopState } from "./tunnel/agents/lifetime.ts";
import { Reports, type ReportedState } from "./tunnel/metrics/reports.ts";
import { Clients } from "./tunnel/tcp/clients.ts";
import { RelayControl } from "./tunnel/tcp/relay-control.ts";
import { Visitors } from "./tunnel/proxy/visitors.ts";

export class Tunnel extends DurableObject<ObjectBindings> implements TunnelRpc {
  readonly #agents: Agents;
  readonly #lastAgent: LastAgent;
  readonly #presence: PresenceReporter;
  readonly #feed: CaptureFeed;
  readonly #lifetime: Lifetime;
  readonly #access: AccessPolicy;
  readonly #customHosts: CustomHosts;
  readonly #alarm: Alarm;
  readonly #reports: Reports;
  readonly #captures: Captures;
  readonly #visitors: Visitors;
  readonly #relay: RelayControl;
  readonly #clients: Clients;
  #isDraining = false;

  constructor(ctx: DurableObjectState, env: ObjectBindings) {
    super(ctx, env);
    this.#customHosts = new CustomHosts(ctx.storage);
    this.#lifetime = new Lifetime(ctx.storage.kv);
    this.#access = new AccessPolicy(ctx.storage, buildAuthenticators(env));
    this.#lastAgent = new LastAgent(ctx.storage.kv);
    this.#agents = new Agents(ctx, (meant) => this.#onAgentDisconnected(meant));
    this.#presence = new PresenceReporter(ctx.storage.kv, env.ORGANIZATION, {
      servingAgent: () => this.#agents.current(Date.now())?.attachment,
      onWatchStatus: (watch) => this.setWatchStatus(watch),
    });
    this.#feed = new CaptureFeed(ctx.storage.kv, () => this.#presence.owner);
    this.#alarm = new Alarm(ctx.storage);
    this.#reports = new Reports(ctx.storage.kv, this.#alarm, env.ROWS, {
      currentState: () => this.#presence(),
      servingToken: () => this.#agents.credential,
      endsAtMs: () => this.#lifetime.expiresAtMs,
    });
    this.#captures = new Captures(ctx.storage, {
      tunnelId: () => ctx.id.name ?? this.#reports.tunnelId,
      alarm: this.#alarm,
      feed: this.#feed,
      isRetired: this.#lifetime.isRetired,
    });
    this.#visitors = new Visitors(ctx, {
      agents: this.#agents,
      agentTrace: this.#lastAgent,
      lifetime: this.#lifetime,
      gatekeeper: this.#access,
      customHosts: this.#customHosts,
      listCaptures: this.#captures,
      usage: this.#reports.usage,
      counted: (request, answer) => this.#reports.countOutcome(request, answer),
      trust: { hosted: env.HOSTED === "true", trustProxy: env.TRUST_PROXY === "true" },
      proto: env.PUBLIC_SCHEME ?? "http",
    });
    this.#relay = new RelayControl(ctx.storage.kv, env.RELAY, () => this.#reports.tunnelId);
    this.#clients = new Clients(ctx, {
      agents: this.#agents,
      alarm: this.#alarm,
      reports: this.#reports,
      allowedCidrs: () => this.#access.allowedCidrs,
      waitForAgent: () => this.#visitors.waitForAgent(),
    });
  }

  // ── Called by workers ──

  /** A visitor's request from the edge, or the connection of an agent or a client from the API. */
  override fetch(request: Request): Response | Promise<Response> {
    if (request.url === AGENT_CONNECT_URL) return this.#acceptAgent(request);
    if (request.url === AGENT_STREAMS_URL) return this.#acceptClient(request);
    // What carries TCP has no HTTP visitors.
    if (this.#relay.isTcp) return refuse({ code: "tunnel_not_found" });
    return this.#reports.countOutcome(request, this.#visit(request));
  }

  /** Permanent: ids are never used again, so a retired tunnel refuses everybody for ever. */
  async retire(why: "deleted" | "expired" = "deleted"): Promise<void> {
    this.#lifetime.retire();
    this.#access.remove();
    if (why === "expired") this.#agents.disconnectAll("tunnel_expired", "the tunnel's time is over");
    else this.#agents.disconnectAll("tunnel_deleted", "the tunnel was deleted");
    this.#visitors.releaseParked();
    this.#clients.disconnectAll("tunnel_deleted", "the tunnel was deleted or has expired");
    await this.#captures.retire();
    await this.#relay.revoke(why === "expired" ? "tunnel_expired" : "tunnel_deleted");
  }

  /** From when this returns on, a stopped tunnel has no agent, and nobody waits for one. */
  async setStopState(stopping: StopState): Promise<void> {
    if (this.#lifetime.isRetired) return;
    this.#lifetime.setStopState(stopping);
    if (!this.#lifetime.isStopped) return;
    this.#agents.disconnectAll("tunnel_stopped", "the tunnel was stopped");
    this.#visitors.releaseParked();
    await this.#relay.revoke("tunnel_stopped");
  }

  /** For a tunnel that no agent may ever come to. */
  scheduleExpiry(tunnelId: string, atMs: number): void {
    this.#reports.identify(tunnelId);
    this.#lifetime.scheduleExpiry(atMs);
    this.#reports.scheduleExpiry();
  }

  /** What its owner set, after the commit. From when this returns on, it holds for every request. */
  publishSettings(settings: SettingsInput): Promise<void> {
    if (this.#lifetime.isRetired) return Promise.resolve();
    this.#access.publish(settings);
    this.#clients.enforceAllowlist();
    return this.#relay.setAllowedCidrs(() => this.#access.allowedCidrs);
  }

  setMaintenance(tunnelId: string, maintenance: Maintenance): void {
    if (this.#lifetime.isRetired) return;
    this.#access.setMaintenance(maintenance);
    this.#reports.identify(tunnelId);
    this.#reports.requestNow();
  }

  /** Whether a custom domain leads here, after the commit. */
  setCustomHost(host: string, residence: CustomHostState): void {
    this.#customHosts.set(host, residence);
  }

  /** What a visitor brings back from signing in is good once. */
  consumeTicket(id: string, endsAtMs: number): boolean {
    return !this.#lifetime.isRetired && this.#access.consumeTicket(id, endsAtMs);
  }

  /** Ends the connections of one capability token. */
  async revokeCredential(tokenNonce: string): Promise<void> {
    this.#agents.disconnectAll("unauthorized", "the token was revoked", { tokenNonce });
    this.#clients.disconnectToken(tokenNonce);
    await this.#relay.revoke("unauthorized", tokenNonce);
  }

  /** The same where its budget is spent. */
  async disconnectOverBudget(tokenNonce: string): Promise<void> {
    const explanation = "the token's budget of this month is spent";
    this.#agents.disconnectAll("BUDGET_EXCEEDED", explanation, { tokenNonce });
    await this.#relay.revoke("BUDGET_EXCEEDED", tokenNonce);
  }

  /** Ends one agent's connection. From when this returns on, the organization lists it no more. */
  async disconnectAgent(agentId: string): Promise<void> {
    const explanation = "somebody of the organization ended the connection";
    const agent = this.#agents.current(Date.now())?.attachment;
    this.#agents.disconnectAll("connection_ended", explanation, { agentId });
    const isServing = agent?.agentId === agentId;
    await Promise.all([
      this.#presence.report(),
      isServing ? this.#relay.revoke("connection_ended", agent.tokenNonce) : this.#relay.flush(),
    ]);
  }

  /** What a relay carried for this tunnel, in totals of one association: the same again changes nothing. */
  addRelayedUsage(usage: TunnelUsage): void {
    this.#reports.identify(usage.tunnelId);
    this.#reports.addRelayedUsage(usage);
  }

  /** Who serves now, for the organization. */
  getPresence(): Presence | null {
    return this.#presence.takePresence();
  }

  /** What of visitors' requests is kept, after the commit: from the next request on. */
  publishCaptureSettings(capturing: CapturePolicy): void {
    if (!this.#lifetime.isRetired) this.#captures.publish(capturing);
  }

  /** Newest first. */
  captures(filter: CaptureFilter): Promise<CaptureSummary[]> {
    return this.#captures.list(filter);
  }

  getCapture(id: string): CaptureEvent | null {
    return this.#captures.findEvent(id);
  }

  /** What came by then. */
  clearCaptures(untilMs: number): Promise<void> {
    return this.#captures.clear(untilMs);
  }

  /** Sends a captured request to the agent that is there, and returns when that is over. */
  async replay(id: string, changes: ReplayChanges = {}): Promise<ReplayOutcome> {
    if (!this.#captures.allowsReplay) return { refused: "replay_disabled" };
    const capture = this.#captures.find(id);
    if (!capture) return { refused: "not_found" };
    const replay = buildReplay(capture, changes);
    if (typeof replay === "string") return { refused: replay };
    if (!this.#agents.current(Date.now())) return { refused: "agent_offline" };
    const capturedAs = await this.#visitors.replay(replay, id);
    return capturedAs === null ? { refused: "not_found" } : { id: capturedAs };
  }

  /** Whether somebody watches, as the organization says. */
  setWatchStatus(watch: WatchStatus): void {
    this.#feed.setWatchStatus(watch);
  }

  /** What is true now, also told to the row: for whoever finds the row's news old. */
  sendReport(): Promise<TunnelReport | null> {
    return this.#reports.send();
  }

  /**
   * The server stops: agents are told to come back later, what is in flight may finish, and what was recorded
   * and counted is on disk when this returns.
   */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#visitors.releaseParked();
    this.#agents.current(Date.now())?.send((writer) => {
      writer.writeText(FRAME.goingAway, 0, 0, "the server restarts");
    });
    await this.#visitors.waitUntilIdle();
    this.#clients.disconnectAll("going_away", "the server restarts");
    this.#agents.disconnectAll("going_away", "the server restarts");
    this.#visitors.closeSockets();
    this.#captures.flush();
    await this.#alarm.attempt(() => this.#reports.onAlarm());
    await this.ctx.storage.sync();
  }

  // ── Called by agents and by visitors' WebSockets ──

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    const attachment = readAttachment(socket);
    if (attachment.kind === "visitor") return this.#visitors.onMessage(socket, message);
    if (attachment.kind === "client") return this.#clients.onMessage(socket, message);
    if (typeof message === "string") {
      this.#agents.rejectMessage(socket, "text is for heartbeats only");
      return;
    }
    if (!attachment.hello) {
      const link = this.#agents.welcome(socket, attachment, message);
      if (link) this.#onAgentConnected(attachment.tokenNonce);
      return;
    }
    const link = this.#agents.findLink(socket);
    // A connection that was replaced has nothing more to say that anybody waits for.
    if (link && !link.receive(message)) this.#agents.rejectMessage(socket, "unreadable frame");
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string): void {
    this.#onSocketClosed(socket, code, reason);
    answerClose(socket, code, reason);
  }

  override webSocketError(socket: WebSocket): void {
    this.#onSocketClosed(socket, 1006, "");
  }

  // ── Called by the platform ──

  override async alarm(): Promise<void> {
    this.#alarm.markFired();
    const { tunnelId } = this.#reports;
    await this.#alarm.attempt(() => this.#lifetime.expireIfDue(this.env.ROWS, tunnelId));
    await Promise.all([
      this.#alarm.attempt(() => this.#captures.onAlarm()),
      this.#alarm.attempt(() => this.#reports.onAlarm()),
      this.#alarm.attempt(() => this.#presence.report()),
      this.#alarm.attempt(() => this.#clients.onAlarm()),
      this.#alarm.attempt(() => this.#relay.flush()),
    ]);
  }

  // ── Inside: agents ──

  #acceptAgent(request: Request): Response {
    if (this.#lifetime.isRetired) return refuse({ code: "tunnel_not_found" });
    if (this.#lifetime.isStopped) return refuse({ code: "conflict" });
    if (this.#isDraining) return refuse({ code: "unavailable" });
    const admission = Admission.parse(JSON.parse(request.headers.get(ADMISSION_HEADER) ?? ""));
    this.#reports.identify(admission.tunnelId, admission.orgId);
    const { retention } = admission;
    if (retention) this.#captures.setRetention(retention.version, retention.days);
    if (admission.endsAtMs !== null) this.#lifetime.scheduleExpiry(admission.endsAtMs);
    if (admission.relay) this.#relay.setPort(admission.relay);
    const { 0: client, 1: server } = new WebSocketPair();
    this.#agents.accept(server, admission);
    const protocol = request.headers.get("sec-websocket-protocol");
    const headers = protocol === null ? undefined : { "sec-websocket-protocol": protocol };
    return new Response(null, { status: 101, webSocket: client, headers });
  }

  #acceptClient(request: Request): Response {
    if (this.#lifetime.isRetired) return refuse({ code: "tunnel_not_found" });
    if (this.#lifetime.isStopped) return refuse({ code: "conflict" });
    return this.#isDraining ? refuse({ code: "unavailable" }) : this.#clients.accept(request);
  }

  #onAgentConnected(tokenNonce: string): void {
    this.#reports.setChargedToken(tokenNonce);
    this.#lastAgent.recordConnected();
    this.#visitors.releaseParked();
    this.#reports.requestNow();
  }

  /** `meant` when the agent said that it goes: then nobody waits for its return. */
  #onAgentDisconnected(meant: boolean): void {
    this.#reports.setChargedToken(null);
    this.#lastAgent.recordDisconnected(meant, Date.now());
    // A restart of the server is none of the owner's doing.
    if (!this.#isDraining) this.#access.endMaintenance();
    this.#reports.requestNow();
  }

  #onSocketClosed(socket: WebSocket, code: number, reason: string): void {
    if (readAttachment(socket).kind === "client") return this.#clients.onClosed(socket);
    if (this.#visitors.onSocketClosed(socket, code, reason)) return;
    this.#agents.onClosed(socket);
    // A Close that wakes the object finds no link: what is left of its agent is that one was there.
    if (this.#lastAgent.isConnected && !this.#agents.current(Date.now())) this.#onAgentDisconnected(false);
  }

  // ── Inside: visitors ──

  #visit(request: Request): Promise<Response> {
    if (!this.#isDraining) return this.#visitors.visit(request);
    return Promise.resolve(refuse(withRetryAfter("unavailable", RECONNECT_MAX_MS)));
  }

  // ── Inside: news ──

  #presence(): ReportedState {
    const agentConnected = this.#agents.current(Date.now()) !== undefined;
    const lastSeenAtMs = agentConnected ? Date.now() : this.#lastAgent.goneAtMs;
    return { agentConnected, lastSeenAtMs, maintenance: this.#access.isInMaintenance };
  }
}
