/**
 * The live state of one tunnel: the agent that serves it, visitors' requests in flight, its counters.
 *
 * The row in PostgreSQL says that the tunnel exists and who owns it; this object knows who is connected. It does
 * not authenticate: only the API hands over agents and clients, and only the edge forwards visitors. Fields hold
 * work in flight, which prevents hibernation; other state is in the sockets' attachments or in storage.
 */
import { DurableObject } from "cloudflare:workers";
import { FRAME } from "../protocol/wire/frames.ts";
import { RECONNECT_MAX_MS } from "../protocol/limits.ts";
import type {
  CaptureDetail,
  CaptureFilter,
  CaptureSummary,
  VersionedCaptureSettings,
  ReplayChanges,
  ReplayOutcome,
} from "../protocol/schemas/inspector/captures.ts";
import type { AssociationUsage } from "../protocol/relay/link.ts";
import type { ObjectBindings } from "./bindings.ts";
import type { Presence, TunnelReport, WatchStatus, TunnelRpc } from "./rpc.ts";
import { parseClose, type SocketClose } from "./close-quietly.ts";
import { buildAuthenticators } from "../access/authenticators/authenticators.ts";
import { toRefusalResponse, withRetryAfter } from "../access/refusal.ts";
import type { AccessSettingsInput } from "../access/settings.ts";
import {
  AgentAdmission,
  ADMISSION_HEADER,
  AGENT_CONNECT_URL,
  CLIENT_CONNECT_URL,
  readAttachment,
} from "./tunnel/agents/admission.ts";
import { Alarm } from "./tunnel/alarm.ts";
import { LastAgent } from "./tunnel/agents/last-agent.ts";
import { Agents } from "./tunnel/agents/agents.ts";
import { PresenceReporter } from "./tunnel/agents/presence-reporter.ts";
import { Captures } from "./tunnel/captures/captures.ts";
import { dryRunPolicy, type DryRunRequest } from "./tunnel/captures/dry-run.ts";
import { CaptureFeed } from "./tunnel/captures/feed.ts";
import { getPublicAddress } from "../protocol/public-address.ts";
import { CustomHosts, type CustomHostState } from "./tunnel/proxy/custom-hosts.ts";
import { AccessPolicy, type Maintenance } from "./tunnel/proxy/access-policy.ts";
import { Lifetime, type StopState } from "./tunnel/agents/lifetime.ts";
import { MetricsReporter, type ReportedState } from "./tunnel/metrics/metrics-reporter.ts";
import { Clients } from "./tunnel/tcp/clients.ts";
import { RelayCommandSender } from "./tunnel/tcp/relay-command-sender.ts";
import { Visitors } from "./tunnel/proxy/visitors.ts";

export class Tunnel extends DurableObject<ObjectBindings> implements TunnelRpc {
  readonly #alarm: Alarm;
  readonly #lifetime: Lifetime;
  readonly #lastAgent: LastAgent;
  readonly #customHosts: CustomHosts;
  readonly #access: AccessPolicy;
  readonly #agents: Agents;
  readonly #presence: PresenceReporter;
  readonly #feed: CaptureFeed;
  readonly #reports: MetricsReporter;
  readonly #relay: RelayCommandSender;
  readonly #captures: Captures;
  readonly #visitors: Visitors;
  readonly #clients: Clients;
  #isDraining = false;

  /** Each part knows only parts above it. The one call upwards is the event of `Agents`. */
  constructor(ctx: DurableObjectState, env: ObjectBindings) {
    super(ctx, env);
    const { storage } = ctx;
    const { kv } = storage;
    const getTunnelId = () => ctx.id.name ?? this.#reports.tunnelId ?? "";
    this.#alarm = new Alarm(storage);
    this.#lifetime = new Lifetime(kv);
    this.#lastAgent = new LastAgent(kv);
    this.#customHosts = new CustomHosts(storage);
    this.#access = new AccessPolicy(storage, buildAuthenticators(env), getTunnelId);
    this.#agents = new Agents(ctx, (willReturn) => this.#onAgentDisconnected(willReturn));
    this.#presence = new PresenceReporter(kv, env, this.#agents, getTunnelId);
    this.#feed = new CaptureFeed(kv, this.#presence);
    this.#reports = new MetricsReporter(kv, this.#alarm, env.INTERNAL_API, {
      currentState: () => this.#getReportedState(),
      servingToken: () => this.#agents.servingToken,
      endsAtMs: () => this.#lifetime.expiresAtMs,
    });
    this.#relay = new RelayCommandSender(kv, env.RELAY, () => this.#reports.tunnelId);
    this.#captures = new Captures(storage, {
      tunnelId: () => ctx.id.name ?? this.#reports.tunnelId,
      alarm: this.#alarm,
      feed: this.#feed,
      isRetired: this.#lifetime.isRetired,
    });
    this.#visitors = new Visitors(ctx, {
      agents: this.#agents,
      lastAgent: this.#lastAgent,
      lifetime: this.#lifetime,
      access: this.#access,
      customHosts: this.#customHosts,
      captures: this.#captures,
      reports: this.#reports,
      trust: { onCloudflare: env.HOSTED === "true", trustProxy: env.TRUST_PROXY === "true" },
      publicAddress: getPublicAddress(env),
    });
    this.#clients = new Clients(ctx, {
      agents: this.#agents,
      alarm: this.#alarm,
      access: this.#access,
      reports: this.#reports,
      visitors: this.#visitors,
    });
  }

  // ── Called by workers: connections and requests ──

  /** A visitor's request from the edge, or the connection of an agent or a client from the API. */
  override fetch(request: Request): Response | Promise<Response> {
    if (request.url === AGENT_CONNECT_URL) return this.#acceptAgent(request);
    if (request.url === CLIENT_CONNECT_URL) return this.#acceptClient(request);
    // TCP tunnels have no HTTP visitors, and counting those of a removed one would fill its storage again.
    if (this.#relay.isTcp || this.#lifetime.isRemoved)
      return toRefusalResponse({ code: "tunnel_not_found" });
    return this.#reports.countOutcome(request, this.#visit(request));
  }

  // ── Called by workers: the tunnel's lifetime and settings, after they were committed ──

  /** Permanent: ids are never reused, so a retired tunnel refuses all agents and visitors. */
  async retire(why: "deleted" | "expired" = "deleted"): Promise<void> {
    this.#alarm.scheduleBy(this.#lifetime.retire(Date.now()), "confirmed");
    this.#access.remove();
    if (why === "expired") this.#agents.disconnectAll("tunnel_expired", "the tunnel has expired");
    else this.#agents.disconnectAll("tunnel_deleted", "the tunnel was deleted");
    this.#visitors.releaseParked();
    this.#clients.disconnectAll("tunnel_deleted", "the tunnel was deleted or has expired");
    await this.#captures.retire();
    await this.#relay.revoke(why === "expired" ? "tunnel_expired" : "tunnel_deleted");
  }

  /** When this returns for a stopped tunnel, no agent is connected and no visitor waits for one. */
  async setStopState(stopState: StopState): Promise<void> {
    if (this.#lifetime.isRetired) return;
    this.#lifetime.setStopState(stopState);
    if (!this.#lifetime.isStopped) return;
    this.#agents.disconnectAll("tunnel_stopped", "the tunnel was stopped");
    this.#visitors.releaseParked();
    await this.#relay.revoke("tunnel_stopped");
  }

  /** Also for a tunnel that no agent has connected to. */
  scheduleExpiry(tunnelId: string, atMs: number): void {
    if (this.#lifetime.isRetired) return;
    this.#reports.setTunnelId(tunnelId);
    this.#lifetime.scheduleExpiry(atMs);
    this.#reports.scheduleExpiryAlarm();
  }

  /** When this returns, the settings apply to every further request. */
  publishAccessSettings(settings: AccessSettingsInput): Promise<void> {
    if (this.#lifetime.isRetired) return Promise.resolve();
    this.#access.publish(settings);
    this.#agents.sendGates(this.#access.gateNames);
    this.#clients.enforceAllowlist();
    return this.#relay.setAllowedCidrs(() => this.#access.allowedCidrs);
  }

  setMaintenance(tunnelId: string, maintenance: Maintenance): void {
    if (this.#lifetime.isRetired) return;
    this.#access.setMaintenance(maintenance);
    this.#reports.setTunnelId(tunnelId);
    this.#reports.reportNow();
  }

  /** Whether a custom domain points to this tunnel. */
  setCustomHost(host: string, state: CustomHostState): void {
    if (!this.#lifetime.isRetired) this.#customHosts.set(host, state);
  }

  /** @returns false when the sign-in ticket was used before. */
  consumeSignInTicket(id: string, expiresAtMs: number): boolean {
    return !this.#lifetime.isRetired && this.#access.consumeTicket(id, expiresAtMs);
  }

  // ── Called by workers: ending connections ──

  /** Disconnects the agents and clients of one capability token. */
  async revokeToken(tokenNonce: string): Promise<void> {
    this.#agents.disconnectAll("unauthorized", "the token was revoked", { tokenNonce });
    this.#clients.disconnectToken(tokenNonce);
    await this.#relay.revoke("unauthorized", tokenNonce);
  }

  /** Disconnects the agents of a token that has spent its budget. */
  async disconnectOverBudget(tokenNonce: string): Promise<void> {
    const explanation =
      "this month's budget of the token, its master key or its organization is used up";
    this.#agents.disconnectAll("BUDGET_EXCEEDED", explanation, { tokenNonce });
    await this.#relay.revoke("BUDGET_EXCEEDED", tokenNonce);
  }

  /** When this returns, the organization no longer lists the agent. */
  async disconnectAgent(agentId: string): Promise<void> {
    const explanation = "a member of the organization ended the connection";
    const agent = this.#agents.current(Date.now())?.attachment;
    this.#agents.disconnectAll("connection_ended", explanation, { agentId });
    const isServing = agent?.agentId === agentId;
    await Promise.all([
      this.#reportPresence(),
      isServing ? this.#relay.revoke("connection_ended", agent.tokenNonce) : this.#relay.flush(),
    ]);
  }

  /** The server restarts. Requests in flight may finish; when this returns, captures and counters are on disk. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    const startedAtMs = Date.now();
    const reason = "the server is restarting";
    this.#visitors.releaseParked();
    this.#agents.current(Date.now())?.send((it) => it.writeText(FRAME.goingAway, 0, 0, reason));
    await this.#visitors.waitUntilIdle();
    this.#clients.disconnectAll("going_away", reason);
    this.#agents.disconnectAll("going_away", reason);
    this.#lastAgent.recordServerStop(startedAtMs);
    this.#visitors.sockets.closeAll();
    this.#captures.flush();
    await this.#alarm.attempt(() => this.#reports.onAlarm());
    await this.ctx.storage.sync();
  }

  // ── Called by workers: captures and reports ──

  /** When this returns, the settings apply to every further request. */
  publishCaptureSettings(policy: VersionedCaptureSettings): void {
    if (!this.#lifetime.isRetired) this.#captures.publish(policy);
  }

  /** Newest first. */
  listCaptures(filter: CaptureFilter): Promise<CaptureSummary[]> {
    return this.#captures.list(filter);
  }

  breakDownCaptures(sinceMs: number, maxRequests: number): ReturnType<Captures["breakDown"]> {
    return this.#captures.breakDown(sinceMs, maxRequests);
  }

  /** What a policy would have done with the newest captures. It is not saved. */
  dryRunPolicy(request: DryRunRequest): ReturnType<typeof dryRunPolicy> {
    return dryRunPolicy(request, this.#captures, this.#access.currentSettings);
  }

  getCapture(id: string): CaptureDetail | null {
    return this.#captures.findEvent(id);
  }

  /** Deletes captures that began at this time or earlier. */
  clearCaptures(untilMs: number): Promise<void> {
    return this.#captures.clear(untilMs);
  }

  /** Sends a captured request to the connected agent. Resolves when the response has ended. */
  replay(id: string, changes: ReplayChanges = {}): Promise<ReplayOutcome> {
    return this.#visitors.replay(id, changes);
  }

  /** Reports the current state to the row, which may be outdated, and returns the same report. */
  sendReport(): Promise<TunnelReport | null> {
    return this.#reports.send();
  }

  // ── Called by other objects ──

  /** By a relay: the totals of one association. The same totals again change nothing. */
  addRelayedUsage(usage: AssociationUsage): void {
    this.#reports.setTunnelId(usage.tunnelId);
    this.#reports.addRelayedUsage(usage);
  }

  /** By the organization. */
  getPresence(): Presence | null {
    return this.#presence.getAndMarkReported();
  }

  /** By the organization. */
  setWatchStatus(status: WatchStatus): void {
    this.#feed.setWatchStatus(status);
  }

  // ── Called by the WebSockets of agents, clients and visitors ──

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    const attachment = readAttachment(socket);
    if (attachment.kind === "visitor") return this.#visitors.sockets.onMessage(socket, message);
    if (attachment.kind === "client") return this.#clients.onMessage(socket, message);
    if (typeof message === "string")
      return this.#agents.rejectMessage(socket, "text messages are for heartbeats only");
    if (!attachment.hello) {
      const link = this.#agents.welcome(socket, attachment, message, this.#access.gateNames);
      if (link) this.#onAgentConnected(attachment.tokenNonce);
      return;
    }
    // An agent that was replaced has no link any more: its messages are ignored.
    const link = this.#agents.findLink(socket);
    if (link && !link.receive(message)) this.#agents.rejectMessage(socket, "unreadable frame");
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string, clean: boolean): void {
    this.#onSocketClosed(socket, parseClose(code, reason, clean));
  }

  override webSocketError(socket: WebSocket): void {
    this.#onSocketClosed(socket, { code: 1006, reason: "" });
  }

  // ── Called by the platform ──

  override async alarm(): Promise<void> {
    this.#alarm.markFired();
    const { tunnelId } = this.#reports;
    await this.#alarm.attempt(() => this.#lifetime.expireIfDue(this.env.INTERNAL_API, tunnelId));
    await Promise.all([
      this.#alarm.attempt(() => this.#captures.onAlarm()),
      this.#alarm.attempt(() => this.#reports.onAlarm()),
      this.#alarm.attempt(() => this.#reportPresence()),
      this.#alarm.attempt(() => this.#clients.onAlarm()),
      this.#alarm.attempt(() => this.#relay.flush()),
    ]);
    await this.#lifetime.removeStorageIfDue(this.ctx, this.#alarm);
  }

  // ── Inside: agents and clients ──

  #acceptAgent(request: Request): Response {
    const refusal = this.#checkConnectable();
    if (refusal) return refusal;
    const admission = AgentAdmission.parse(JSON.parse(request.headers.get(ADMISSION_HEADER) ?? ""));
    this.#reports.setTunnelId(admission.tunnelId);
    const { retention, endsAtMs, relay } = admission;
    if (retention) this.#captures.setRetention(retention.version, retention.days);
    if (endsAtMs !== null) this.#lifetime.scheduleExpiry(endsAtMs);
    if (relay) this.#relay.setPort(relay);
    const { 0: client, 1: server } = new WebSocketPair();
    this.#agents.accept(server, admission);
    const protocol = request.headers.get("sec-websocket-protocol");
    const headers = protocol === null ? undefined : { "sec-websocket-protocol": protocol };
    return new Response(null, { status: 101, webSocket: client, headers });
  }

  #acceptClient(request: Request): Response {
    return this.#checkConnectable() ?? this.#clients.accept(request);
  }

  #checkConnectable(): Response | undefined {
    if (this.#lifetime.isRetired) return toRefusalResponse({ code: "tunnel_not_found" });
    if (this.#lifetime.isStopped) return toRefusalResponse({ code: "conflict" });
    return this.#isDraining ? toRefusalResponse({ code: "unavailable" }) : undefined;
  }

  #onAgentConnected(tokenNonce: string): void {
    this.#reports.setChargedToken(tokenNonce);
    this.#lastAgent.recordConnected();
    this.#visitors.releaseParked();
    this.#reports.reportNow();
  }

  #onAgentDisconnected(willReturn: boolean): void {
    this.#reports.setChargedToken(null);
    this.#lastAgent.recordDisconnected(willReturn, Date.now());
    // A restart of the server does not end maintenance: the agent reconnects.
    if (!this.#isDraining) this.#access.endMaintenance();
    this.#reports.reportNow();
  }

  #onSocketClosed(socket: WebSocket, close: SocketClose): void {
    const { kind } = readAttachment(socket);
    if (kind === "client") return this.#clients.onClosed(socket, close);
    if (kind === "visitor") return this.#visitors.sockets.onClosed(socket, close);
    this.#agents.onClosed(socket, close);
    // A Close that wakes the object finds no link, only the record that an agent was connected.
    const isLost = this.#lastAgent.isConnected && !this.#agents.current(Date.now());
    if (isLost) this.#onAgentDisconnected(true);
  }

  // ── Inside: visitors and reports ──

  #visit(request: Request): Promise<Response> {
    if (!this.#isDraining) return this.#visitors.visit(request);
    return Promise.resolve(toRefusalResponse(withRetryAfter("unavailable", RECONNECT_MAX_MS)));
  }

  async #reportPresence(): Promise<void> {
    const watchStatus = await this.#presence.report();
    if (watchStatus) this.#feed.setWatchStatus(watchStatus);
  }

  #getReportedState(): ReportedState {
    const agentConnected = this.#agents.current(Date.now()) !== undefined;
    const lastSeenAtMs = agentConnected ? Date.now() : this.#lastAgent.disconnectedAtMs;
    return { agentConnected, lastSeenAtMs, maintenance: this.#access.isInMaintenance };
  }
}
