/**
 * The live state of one tunnel: the agent that serves it, visitors' requests in flight, its counters.
 *
 * The row in PostgreSQL says that the tunnel exists and who owns it; this object knows who is connected. It does
 * not authenticate: only the API hands over agents and clients, and only the edge forwards visitors. Fields hold
 * work in flight, which prevents hibernation; other state is in the sockets' attachments or in storage.
 */
import { DurableObject } from "cloudflare:workers";
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
import type { AgentState, Presence, TunnelReport, WatchStatus, TunnelRpc } from "./rpc.ts";
import { parseClose, type SocketClose } from "./websockets.ts";
import { toRefusalResponse, withRetryAfter } from "../access/refusal.ts";
import type { AccessSettingsInput } from "../access/settings.ts";
import { AGENT_CONNECT_URL, CLIENT_CONNECT_URL } from "./tunnel/admission.ts";
import { readAttachment } from "./tunnel/socket-attachments.ts";
import { matchId, matchToken, getIdentity, matchAgent } from "./tunnel/agents/identity.ts";
import type { AgentIdentity } from "./tunnel/agents/identity.ts";
import type { Captures } from "./tunnel/captures/captures.ts";
import { dryRunPolicy, type DryRunRequest } from "./tunnel/captures/reading/dry-run.ts";
import type { CustomHostState } from "./tunnel/proxy/custom-hosts.ts";
import type { Maintenance } from "./tunnel/proxy/access-policy.ts";
import type { StopState } from "./tunnel/lifetime.ts";
import type { ShardAddress } from "./tunnel/shards/object-name.ts";
import { edgeGarbageCollection } from "../shared/garbage-collection.ts";
import { drain } from "./tunnel/drain.ts";
import { createParts, type TunnelParts } from "./tunnel/parts.ts";
import { runAlarm } from "./tunnel/run-alarm.ts";
import { acceptAgent } from "./tunnel/agents/accept-agent.ts";
import { listAgentStates } from "./tunnel/shards/agent-states.ts";
import { copySettings } from "./tunnel/shards/copy-settings.ts";
import { replay } from "./tunnel/shards/replay.ts";
import { Shards, type ShardCount } from "./tunnel/shards/shards.ts";

const CONNECTION_ENDED = "a member of the organization ended the connection";

interface TunnelBindings extends Omit<ObjectBindings, "TUNNEL"> {
  TUNNEL: DurableObjectNamespace<Tunnel>;
}

export class Tunnel extends DurableObject<TunnelBindings> implements TunnelRpc {
  readonly #shards: Shards<DurableObjectStub<Tunnel>>;
  readonly #parts: TunnelParts;
  #isDraining = false;

  constructor(ctx: DurableObjectState, env: TunnelBindings) {
    super(ctx, env);
    this.#shards = new Shards(ctx.storage.kv, ctx.id.name, (name) => env.TUNNEL.getByName(name));
    this.#parts = createParts(ctx, env, this.#shards, (willReturn) =>
      this.#onAgentDisconnected({ willReturn }),
    );
  }

  // ── Called by workers: connections and requests ──

  /** A visitor's request from the edge, or the connection of an agent or a client from the API. */
  override fetch(request: Request): Response | Promise<Response> {
    if (request.url === AGENT_CONNECT_URL) return this.#acceptAgent(request);
    if (request.url === CLIENT_CONNECT_URL) return this.#acceptClient(request);
    // Without an agent here, the first object serves visitors, or waits for the agent.
    const hasAgent = () => this.#parts.agents.isAnyServing(Date.now());
    if (!this.#shards.servesHere(hasAgent)) return this.#shards.first.fetch(request);
    // TCP tunnels have no HTTP visitors, and counting those of a removed one would fill its storage again.
    if (this.#parts.relay.isTcp || this.#parts.lifetime.isRemoved)
      return toRefusalResponse({ code: "tunnel_not_found" });
    return this.#parts.reports.countOutcome(request, this.#visit(request));
  }

  // ── Called by workers: the tunnel's lifetime and settings, after they were committed ──

  /** Permanent: ids are never reused, so a retired tunnel refuses all agents and visitors. */
  async retire(why: "deleted" | "expired" = "deleted"): Promise<void> {
    this.#parts.alarm.scheduleBy(this.#parts.lifetime.retire(Date.now()), "confirmed");
    this.#parts.access.remove();
    const explanation = why === "expired" ? "the tunnel has expired" : "the tunnel was deleted";
    this.#parts.agents.disconnectAll(`tunnel_${why}`, explanation);
    this.#parts.visitors.releaseParked();
    this.#parts.clients.disconnectAll("tunnel_deleted", "the tunnel was deleted or has expired");
    await this.#parts.captures.retire();
    await this.#parts.relay.revoke(`tunnel_${why}`);
    await this.#shards.forOthers((it) => it.retire(why));
  }

  /** When this returns for a stopped tunnel, no agent is connected and no visitor waits for one. */
  async setStopState(stopState: StopState): Promise<void> {
    if (this.#parts.lifetime.isRetired) return;
    this.#parts.lifetime.setStopState(stopState);
    if (this.#parts.lifetime.isStopped) {
      this.#parts.agents.disconnectAll("tunnel_stopped", "the tunnel was stopped");
      this.#parts.visitors.releaseParked();
      await this.#parts.relay.revoke("tunnel_stopped");
    }
    await this.#shards.forOthers((it) => it.setStopState(stopState));
  }

  /** How many objects the visitors are spread over. When this returns, all of them have the tunnel's settings. */
  async setShards(ownAddress: ShardAddress, count: ShardCount): Promise<void> {
    if (this.#parts.lifetime.isRetired || !this.#shards.set(ownAddress, count)) return;
    this.#parts.reports.setTunnelId(ownAddress.tunnelId);
    await this.#shards.forOthers(async (it, other) => {
      await copySettings(this.#parts, ownAddress.tunnelId, it);
      await it.setShards(other, count);
    });
    this.#parts.agents.onShardCountChanged();
  }

  /** Works for a tunnel that no agent has connected to yet, too. */
  scheduleExpiry(tunnelId: string, atMs: number): void {
    if (this.#parts.lifetime.isRetired) return;
    this.#parts.reports.setTunnelId(tunnelId);
    this.#parts.lifetime.scheduleExpiry(atMs);
    this.#parts.reports.scheduleExpiryAlarm();
  }

  /** When this returns, the settings apply to every further request. */
  async publishAccessSettings(settings: AccessSettingsInput): Promise<void> {
    if (this.#parts.lifetime.isRetired) return;
    this.#parts.access.publish(settings);
    this.#parts.agents.sendStatus(this.#parts.access.agentStatus);
    this.#parts.clients.enforceAllowlist();
    await this.#parts.relay.setAllowedCidrs(() => this.#parts.access.allowedCidrs);
    await this.#shards.forOthers((it) => it.publishAccessSettings(settings));
  }

  async setMaintenance(tunnelId: string, maintenance: Maintenance): Promise<void> {
    if (this.#parts.lifetime.isRetired) return;
    this.#parts.access.setMaintenance(maintenance);
    this.#parts.agents.sendStatus(this.#parts.access.agentStatus);
    this.#parts.reports.setTunnelId(tunnelId);
    this.#parts.reports.reportNow();
    await this.#shards.forOthers((it) => it.setMaintenance(tunnelId, maintenance));
  }

  getMaintenance(): Maintenance | undefined {
    return this.#parts.access.maintenance;
  }

  /** Whether a custom domain points to this tunnel. */
  async setCustomHost(host: string, state: CustomHostState): Promise<void> {
    if (this.#parts.lifetime.isRetired) return;
    this.#parts.customHosts.set(host, state);
    await this.#shards.forOthers((it) => it.setCustomHost(host, state));
  }

  /** @returns false when the sign-in ticket was used before. */
  consumeSignInTicket(id: string, expiresAtMs: number): boolean {
    return !this.#parts.lifetime.isRetired && this.#parts.access.consumeTicket(id, expiresAtMs);
  }

  // ── Called by workers: ending connections ──

  /** Disconnects the agents of one capability token. */
  async revokeToken(tokenNonce: string): Promise<void> {
    const matches = matchToken(tokenNonce);
    this.#parts.agents.disconnectAll("unauthorized", "the token was revoked", matches);
    await this.#parts.relay.revoke("unauthorized", tokenNonce);
    await this.#shards.forOthers((it) => it.revokeToken(tokenNonce));
  }

  /** Disconnects the clients of `underpass connect` that use one of these tokens, which were revoked. */
  disconnectClients(tokenNonces: string[]): void {
    this.#parts.clients.disconnectTokens(tokenNonces);
  }

  /** Disconnects the agents of a token that has spent its budget. */
  async disconnectOverBudget(tokenNonce: string): Promise<void> {
    const explanation =
      "this month's budget of the token, its master key or its organization is used up";
    this.#parts.agents.disconnectAll("BUDGET_EXCEEDED", explanation, matchToken(tokenNonce));
    await this.#parts.relay.revoke("BUDGET_EXCEEDED", tokenNonce);
    await this.#shards.forOthers((it) => it.disconnectOverBudget(tokenNonce));
  }

  /** When this returns, the organization no longer lists the agent. */
  async disconnectAgent(agentId: string): Promise<void> {
    const agent = this.#parts.agents.find(agentId)?.attachment;
    this.#parts.agents.disconnectAll("connection_ended", CONNECTION_ENDED, matchId(agentId));
    await Promise.all([
      this.#reportPresence(),
      agent
        ? this.#parts.relay.revoke("connection_ended", agent.tokenNonce)
        : this.#parts.relay.flush(),
      agent && this.#shards.forOthers((it) => it.disconnectSameAgent(getIdentity(agent))),
    ]);
  }

  /** The server restarts. Requests in flight may finish; when this returns, captures and counters are on disk. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await drain(this.#parts, () => this.#shards.forOthers((it) => it.drain()));
    await this.ctx.storage.sync();
  }

  // ── Called by workers: captures and reports ──

  /** The first object calls it on the others, too. */
  listAgents(): Promise<AgentState[]> {
    return listAgentStates(this.#parts.agents, this.#shards);
  }

  /** When this returns, the settings apply to every further request. */
  async publishCaptureSettings(settings: VersionedCaptureSettings): Promise<void> {
    if (this.#parts.lifetime.isRetired) return;
    this.#parts.captures.publish(settings);
    await this.#shards.forOthers((it) => it.publishCaptureSettings(settings));
  }

  /** Newest first. */
  listCaptures(filter: CaptureFilter): Promise<CaptureSummary[]> {
    return this.#parts.captureReader.list(filter);
  }

  breakDownCaptures(sinceMs: number, maxRequests: number): ReturnType<Captures["breakDown"]> {
    return this.#parts.captureReader.breakDown(sinceMs, maxRequests);
  }

  /** Evaluates a policy on the newest captures, without saving it. */
  dryRunPolicy(request: DryRunRequest): ReturnType<typeof dryRunPolicy> {
    return dryRunPolicy(request, this.#parts.captureReader, this.#parts.access.currentSettings);
  }

  getCaptures(ids: string[]): Promise<(CaptureDetail | null)[]> {
    return this.#parts.captureReader.find(ids);
  }

  /** Deletes captures that began at this time or earlier. */
  async clearCaptures(untilMs: number): Promise<void> {
    await this.#parts.captures.clear(untilMs);
    await this.#shards.forOthers((it) => it.clearCaptures(untilMs));
  }

  /** Sends a captured request to the connected agent. Resolves when the response has ended. */
  replay(id: string, changes: ReplayChanges = {}): Promise<ReplayOutcome> {
    return replay(this.#parts, this.#shards, id, changes);
  }

  /** Reports the current state to the row, which may be outdated, and returns the same report. */
  async sendReport(): Promise<TunnelReport | null> {
    await this.#shards.forOthers((it) => it.sendReport());
    return this.#parts.reports.send();
  }

  // ── Called by other objects ──

  /** Called by a relay with the totals of one association. The same totals again change nothing. */
  addRelayedUsage(usage: AssociationUsage): void {
    this.#parts.reports.addRelayedUsage(usage);
  }

  /** Called by the organization. */
  getPresence(): Presence | null {
    return this.#parts.presence.getAndMarkReported();
  }

  /** Called by the organization. */
  async setWatchStatus(status: WatchStatus): Promise<void> {
    // The storage of a tunnel that has ended must stay empty.
    if (this.#parts.lifetime.isRetired) return;
    this.#parts.feed.setWatchStatus(status);
    await this.#shards.forOthers((it) => it.setWatchStatus(status));
  }

  // ── Called by the first object of the same tunnel, and by the others on the first one ──

  endMaintenance(version: number): void {
    this.#parts.access.endMaintenance(version);
  }

  disconnectSameAgent(agent: AgentIdentity): void {
    this.#parts.agents.disconnectAll("connection_ended", CONNECTION_ENDED, matchAgent(agent));
  }

  listVisits(limit: number, readsHeaders: boolean): ReturnType<Captures["listVisits"]> {
    return this.#parts.captures.listVisits(limit, readsHeaders);
  }

  addShardReport(shard: number, report: TunnelReport): void {
    this.#parts.reports.addShardReport(shard, report);
  }

  // ── Called by the WebSockets of agents, clients and visitors ──

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    edgeGarbageCollection.countMessage(message);
    const { agents, access, clients, visitors } = this.#parts;
    const attachment = readAttachment(socket);
    if (attachment.kind === "visitor") return visitors.sockets.onMessage(socket, message);
    if (attachment.kind === "client") return clients.onMessage(socket, message);
    if (typeof message === "string")
      return agents.rejectMessage(socket, "text messages are for heartbeats only");
    if (!attachment.hello) {
      const link = agents.welcome(socket, attachment, message, access.agentStatus);
      if (link) this.#onAgentConnected(attachment.tokenNonce);
      return;
    }
    // An agent that was replaced no longer has a link: its messages are ignored.
    agents.findLink(socket)?.receive(message);
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string, clean: boolean): void {
    this.#onSocketClosed(socket, parseClose(code, reason, clean));
  }

  override webSocketError(socket: WebSocket): void {
    this.#onSocketClosed(socket, { code: 1006, reason: "" });
  }

  // ── Called by the platform ──

  override alarm(): Promise<void> {
    return runAlarm(this.ctx, this.#parts, {
      rows: this.env.INTERNAL_API,
      reportPresence: () => this.#reportPresence(),
    });
  }

  // ── Inside: agents and clients ──

  #acceptAgent(request: Request): Response {
    return this.#checkConnectable() ?? acceptAgent(request, this.#parts, this.#shards.isFirst);
  }

  #acceptClient(request: Request): Response {
    return this.#checkConnectable() ?? this.#parts.clients.accept(request);
  }

  #checkConnectable(): Response | undefined {
    if (this.#parts.lifetime.isRetired) return toRefusalResponse({ code: "tunnel_not_found" });
    if (this.#parts.lifetime.isStopped) return toRefusalResponse({ code: "conflict" });
    const isUnavailable = this.#isDraining || !this.#shards.isServing;
    return isUnavailable ? toRefusalResponse({ code: "unavailable" }) : undefined;
  }

  #onAgentConnected(tokenNonce: string): void {
    this.#parts.reports.setChargedToken(tokenNonce);
    this.#parts.lastAgent.recordConnected();
    this.#parts.visitors.releaseParked();
    this.#parts.reports.reportNow();
  }

  #onAgentDisconnected({ willReturn }: { willReturn: boolean }): void {
    if (this.#parts.agents.isAnyServing(Date.now())) return this.#parts.reports.reportNow();
    this.#parts.reports.setChargedToken(null);
    this.#parts.lastAgent.recordDisconnected(willReturn, Date.now());
    // A restart of the server does not end maintenance: the agent reconnects.
    if (!this.#isDraining) this.#parts.maintenanceEnd.begin();
    this.#parts.reports.reportNow();
  }

  #onSocketClosed(socket: WebSocket, close: SocketClose): void {
    const attachment = readAttachment(socket);
    if (attachment.kind === "client") return this.#parts.clients.onClosed(socket, close);
    if (attachment.kind === "visitor") return this.#parts.visitors.sockets.onClosed(socket, close);
    const hasLink = this.#parts.agents.findLink(socket) !== undefined;
    this.#parts.agents.onClosed(socket, close);
    // A Close that wakes the object finds no link, only the record that an agent was connected.
    if (!hasLink && attachment.hello && this.#parts.lastAgent.isConnected)
      this.#onAgentDisconnected({ willReturn: true });
  }

  // ── Inside: visitors and reports ──

  #visit(request: Request): Promise<Response> {
    if (!this.#isDraining) return this.#parts.visitors.visit(request);
    return Promise.resolve(toRefusalResponse(withRetryAfter("unavailable", RECONNECT_MAX_MS)));
  }

  /** The tunnel's agent is the one that is connected to the first object. */
  async #reportPresence(): Promise<void> {
    if (!this.#shards.isFirst) return;
    const watchStatus = await this.#parts.presence.report();
    if (watchStatus) this.#parts.feed.setWatchStatus(watchStatus);
  }
}
