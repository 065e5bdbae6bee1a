/**
 * One organization, live: which of its agents are connected, and who watches its tunnels.
 *
 * Tunnels report when an agent connects and disconnects. Before a list of agents is returned, tunnels without a recent
 * report are asked: all of them after a restart of the isolate, later the hundred whose reports are oldest. Tunnels
 * send the requests that they capture while a watcher is connected.
 */
import { DurableObject } from "cloudflare:workers";
import { WATCHER_RETRY_AFTER_MS } from "../protocol/limits.ts";
import type { ObjectBindings } from "./bindings.ts";
import type { CaptureBatch, OrganizationRpc, Presence, WatchStatus } from "./rpc.ts";
import { answerClose, answerUpgrade, parseClose } from "./websockets.ts";
import { toRefusalResponse, withRetryAfter } from "../access/refusal.ts";
import { WATCH_HEADER, WatcherAdmission } from "./organization/watcher-admission.ts";
import { inParallel } from "../shared/in-parallel.ts";
import {
  ConnectedAgents,
  createReportTimes,
  type ConnectedAgent,
} from "./organization/connected-agents.ts";
import { Watchers } from "./organization/watchers.ts";
import { MINUTE_MS } from "../shared/time.ts";

const TUNNEL_CALLS_MAX_CONCURRENT = 64;
/**
 * How often the database is asked whether watchers' sessions are still valid. Code that ends a session also notifies
 * this object.
 */
const WATCH_SESSION_CHECK_MS = 15 * MINUTE_MS;
/** How soon the check is repeated when the database was unavailable. */
export const WATCH_SESSION_RETRY_MS = MINUTE_MS;
/** How long a new watcher waits until the tunnels are notified. */
const WATCH_NOTIFY_TIMEOUT_MS = 2_000;
/** How often a tunnel that can't be reached is notified. */
const WATCH_NOTIFY_MAX_ATTEMPTS = 3;

const VERSION_KEY = "watch-version";

/** Shared by the objects of all organizations in this isolate. */
const reportTimes = createReportTimes();

/**
 * Which watchers: those of some sessions, those of one user, those whose session or token is found to have ended, or all.
 */
export type WatcherSelector = { sessionIds: string[] } | { userId: string } | "ended" | "everybody";

export class Organization extends DurableObject<ObjectBindings> implements OrganizationRpc {
  readonly #connectedAgents: ConnectedAgents;
  readonly #watchers: Watchers;
  /** Calls to tunnels by their ids: concurrent lists wait for the same answer. */
  readonly #refreshing = new Map<string, Promise<void>>();
  #notifying: Promise<void> = Promise.resolve();
  #draining = false;

  constructor(ctx: DurableObjectState, env: ObjectBindings) {
    super(ctx, env);
    this.#connectedAgents = new ConnectedAgents(ctx.storage.sql, reportTimes);
    this.#watchers = new Watchers(ctx);
  }

  // ── Called by workers ──

  /**
   * Every agent that is connected, the newest first. With more than a hundred tunnels, an agent that was lost without a
   * report of its tunnel may be among them until a later list asks that tunnel.
   */
  async listConnections(): Promise<ConnectedAgent[]> {
    const agents = this.#connectedAgents;
    agents.removeDeparted(Date.now());
    await this.#refresh(agents.findStaleTunnels(agents.list(), Date.now()));
    return agents.list();
  }

  /** @returns the tunnel that this agent serves now; null when no such agent is connected. */
  async findTunnelOfAgent(agentId: string): Promise<string | null> {
    const agents = this.#connectedAgents;
    const agent = agents.find(agentId);
    if (!agent) return null;
    await this.#refresh(agents.findStaleTunnels([agent], Date.now()));
    return agents.find(agentId)?.tunnelId ?? null;
  }

  /** A watcher's connection from the API. The watcher is sent every request that begins after the response. */
  override async fetch(request: Request): Promise<Response> {
    if (this.#draining)
      return toRefusalResponse(withRetryAfter("unavailable", WATCHER_RETRY_AFTER_MS));
    if (this.#watchers.isFull)
      return toRefusalResponse(withRetryAfter("rate_limited", WATCHER_RETRY_AFTER_MS));
    const admission = WatcherAdmission.parse(JSON.parse(request.headers.get(WATCH_HEADER) ?? ""));
    const { 0: client, 1: server } = new WebSocketPair();
    const tunnelIds = this.#findTunnelsToNotify(admission);
    this.#watchers.accept(server, admission);
    this.#onWatchersChanged();
    // Tunnels that are being notified for an earlier watcher are waited for too.
    const earlier = this.#notifying;
    this.#notifying = this.#notifyTunnels(tunnelIds).then(() => earlier);
    const notified = Promise.race([this.#notifying, scheduler.wait(WATCH_NOTIFY_TIMEOUT_MS)]);
    // Checked after the socket was accepted: a session that ends from here on closes this watcher too.
    const [isLive] = await Promise.all([this.#closeUnlessLive(server, admission), notified]);
    if (!isLive) return toRefusalResponse({ code: "unauthorized" });
    return answerUpgrade(request, client);
  }

  /** After this returns, the sessions and tokens that have ended receive nothing. */
  async closeWatchers(selector: WatcherSelector): Promise<void> {
    if (selector === "ended") return this.#closeEnded();
    const matches = ({ credentialId, userId }: WatcherAdmission) => {
      if (selector === "everybody") return true;
      if ("userId" in selector) return selector.userId === userId;
      return selector.sessionIds.includes(credentialId);
    };
    if (this.#watchers.closeWhere(matches, "session_ended")) this.#onWatchersChanged();
  }

  /** The server stops: watchers are disconnected with a code that asks them to reconnect later. */
  drain(): void {
    this.#draining = true;
    this.#watchers.closeWhere(() => true, "going_away");
  }

  // ── Called by tunnels ──

  reportPresence(presence: Presence): WatchStatus {
    this.#connectedAgents.apply(presence, Date.now());
    return this.#getWatchStatus(presence.tunnelId);
  }

  deliverCaptures(batch: CaptureBatch): WatchStatus {
    this.#watchers.deliver(batch);
    const status = this.#getWatchStatus(batch.tunnelId);
    // The tunnel sends nothing more until the next watcher's connection is announced to it.
    if (!status.isWatched) this.#connectedAgents.addTunnel(batch.tunnelId, Date.now());
    return status;
  }

  // ── Called by watchers ──

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.#watchers.handleMessage(socket, message);
  }

  override webSocketClose(
    socket: WebSocket,
    ...close: [code: number, reason: string, wasClean: boolean]
  ): void {
    this.#removeWatcher(socket);
    answerClose(socket, parseClose(...close));
  }

  override webSocketError(socket: WebSocket): void {
    this.#removeWatcher(socket);
  }

  // ── Called by the platform ──

  /**
   * Code that ends a session or a token notifies this object at once; this check is for notifications that did not arrive,
   * and for what expires.
   */
  override async alarm(): Promise<void> {
    if (this.#watchers.count === 0) return;
    let nextMs = WATCH_SESSION_CHECK_MS;
    try {
      await this.#closeEnded();
    } catch {
      // The platform gives up on an alarm that keeps failing, and an outage can last longer.
      nextMs = WATCH_SESSION_RETRY_MS;
    }
    await this.#scheduleSessionCheck(nextMs);
  }

  // ── Inside: connections ──

  async #refresh(tunnelIds: string[]): Promise<void> {
    await inParallel(TUNNEL_CALLS_MAX_CONCURRENT, tunnelIds, (id) => {
      const refreshing = this.#refreshing.get(id) ?? this.#refreshOne(id);
      this.#refreshing.set(id, refreshing);
      return refreshing;
    });
  }

  /** The entry of a tunnel that can't be asked stays as it is, and a later list asks again. */
  async #refreshOne(tunnelId: string): Promise<void> {
    try {
      const presence = await this.env.TUNNEL.getByName(tunnelId).getPresence();
      if (presence) this.#connectedAgents.apply(presence, Date.now());
      else this.#connectedAgents.remove(tunnelId);
    } catch {
      // The entry stays: a connected agent must not be missing from the list.
      this.#connectedAgents.postpone(tunnelId, Date.now());
    } finally {
      this.#refreshing.delete(tunnelId);
    }
  }

  // ── Inside: watching ──

  /** Tunnels that have not been notified yet that they are watched. */
  #findTunnelsToNotify({ tunnelId }: WatcherAdmission): string[] {
    if (this.#watchers.isEveryTunnelWatched) return [];
    const wanted = tunnelId === null ? this.#connectedAgents.listTunnelIds(Date.now()) : [tunnelId];
    return wanted.filter((id) => !this.#watchers.isTunnelWatched(id));
  }

  async #notifyTunnels(tunnelIds: string[]): Promise<void> {
    await inParallel(TUNNEL_CALLS_MAX_CONCURRENT, tunnelIds, async (id) => {
      for (let attempt = 1; attempt <= WATCH_NOTIFY_MAX_ATTEMPTS; attempt++) {
        try {
          return await this.env.TUNNEL.getByName(id).setWatchStatus(this.#getWatchStatus(id));
        } catch {
          // Overloaded or restarting. A tunnel that misses this learns it when its agent next connects.
        }
      }
    });
  }

  /** Tunnels that are no longer watched are not notified: the response to their next report says so. */
  #onWatchersChanged(): void {
    this.ctx.storage.kv.put(VERSION_KEY, this.#watchVersion + 1);
    void this.#scheduleSessionCheck(WATCH_SESSION_CHECK_MS);
  }

  async #scheduleSessionCheck(waitMs: number): Promise<void> {
    if (this.#watchers.count === 0 || (await this.ctx.storage.getAlarm()) !== null) return;
    await this.ctx.storage.setAlarm(Date.now() + waitMs);
  }

  async #closeEnded(): Promise<void> {
    const { admissions } = this.#watchers;
    if (admissions.length === 0) return;
    const live = await this.#findLive(admissions);
    const checked = new Set(admissions.map(({ credentialId }) => credentialId));
    const hasEnded = ({ credentialId }: WatcherAdmission) =>
      checked.has(credentialId) && !live.has(credentialId);
    if (this.#watchers.closeWhere(hasEnded, "session_ended")) this.#onWatchersChanged();
  }

  /** @returns the ids of the sessions and tokens that have not ended. */
  async #findLive(admissions: WatcherAdmission[]): Promise<Set<string>> {
    return new Set(
      await this.env.INTERNAL_API.findLiveWatchers(this.ctx.id.name ?? "", admissions),
    );
  }

  /** A session or token may have ended after the API had verified it. */
  async #closeUnlessLive(socket: WebSocket, admission: WatcherAdmission): Promise<boolean> {
    let isLive = false;
    try {
      isLive = (await this.#findLive([admission])).has(admission.credentialId);
    } finally {
      if (!isLive && this.#watchers.close(socket, "session_ended")) this.#onWatchersChanged();
    }
    return isLive;
  }

  #removeWatcher(socket: WebSocket): void {
    if (this.#watchers.remove(socket)) this.#onWatchersChanged();
  }

  get #watchVersion(): number {
    return this.ctx.storage.kv.get<number>(VERSION_KEY) ?? 0;
  }

  #getWatchStatus(tunnelId: string): WatchStatus {
    return { version: this.#watchVersion, isWatched: this.#watchers.isTunnelWatched(tunnelId) };
  }
}
