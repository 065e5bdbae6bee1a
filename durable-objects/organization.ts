/**
 * One organization, live: which of its agents are connected, and who watches its tunnels.
 *
 * Tunnels tell when an agent comes and goes. The list is true at the moment in which it is given: tunnels
 * that were not heard of for a while, or not since this object started, are asked first. What they capture
 * they tell while somebody watches.
 */
import { DurableObject } from "cloudflare:workers";
import { RECONNECT_WATCHER_MS } from "../protocol/limits.ts";
import type { ObjectBindings } from "./bindings.ts";
import type { Attendance, CaptureNews, Watch, OrganizationRpc } from "./rpc.ts";
import { answerClose } from "./close-quietly.ts";
import { refuse, retryAfter } from "../access/refusal.ts";
import { WATCH_HEADER, WatcherAdmission } from "./organization/admission.ts";
import { inParallel } from "../shared/in-parallel.ts";
import { Roster, type RosterEntry } from "./organization/roster.ts";
import { organizationsWatchedHere } from "./organization/watched-here.ts";
import { Watchers } from "./organization/watchers.ts";

const ATTENDANCE_ASKED_AT_ONCE = 64;
/** How often rows are asked whether watchers' sessions still live. What ends them tells so at once. */
const WATCH_SESSION_CHECK_MS = 15 * 60_000;
/** The same, when they could not be asked. */
export const WATCH_SESSION_RETRY_MS = 60_000;
/** How long a watcher's welcome waits until the tunnels know of it. */
const WATCH_TOLD_MAX_MS = 2_000;
/** How often a tunnel is told that it is watched, if it can't be reached. */
const WATCH_TOLD_MAX_TRIES = 3;

const VERSION_KEY = "watch-version";

/** Whose watching ends: of these sessions, of one person, or everybody's. */
export type WatchingEnd = { sessionIds: string[] } | { userId: string } | "everybody";

export class Organization extends DurableObject<ObjectBindings> implements OrganizationRpc {
  readonly #roster: Roster;
  readonly #watchers: Watchers;
  /** Tunnels that are being asked: whoever wants to know at the same time waits for the same answer. */
  readonly #asked = new Map<string, Promise<void>>();
  #telling: Promise<unknown> = Promise.resolve();
  #draining = false;

  constructor(ctx: DurableObjectState, env: ObjectBindings) {
    super(ctx, env);
    this.#roster = new Roster(ctx.storage.sql);
    this.#watchers = new Watchers(ctx);
  }

  // ── Called by workers ──

  /** Every agent that is connected now, the newest first. */
  async connections(): Promise<RosterEntry[]> {
    this.#roster.dropLeft(Date.now());
    await this.#ask(this.#roster.doubted(this.#roster.list(), Date.now()));
    return this.#roster.list();
  }

  /** @returns the tunnel that this agent serves now; null when there is no such agent. */
  async tunnelOf(agentId: string): Promise<string | null> {
    const entry = this.#roster.find(agentId);
    if (!entry) return null;
    await this.#ask(this.#roster.doubted([entry], Date.now()));
    return this.#roster.find(agentId)?.tunnelId ?? null;
  }

  /** A watcher's connection from the API. It hears of every request that begins after the answer. */
  override async fetch(request: Request): Promise<Response> {
    if (this.#draining) return refuse(retryAfter("unavailable", RECONNECT_WATCHER_MS));
    if (this.#watchers.isFull) return refuse(retryAfter("rate_limited", RECONNECT_WATCHER_MS));
    const admission = WatcherAdmission.parse(JSON.parse(request.headers.get(WATCH_HEADER) ?? ""));
    const { 0: client, 1: server } = new WebSocketPair();
    const unheard = this.#unheard(admission);
    this.#watchers.accept(server, admission);
    organizationsWatchedHere.add(this.ctx.id.name ?? "");
    this.#watchersChanged();
    // Whoever comes while tunnels are still being told waits for that too.
    this.#telling = Promise.all([this.#telling, this.#tellWatch(unheard)]);
    const told = Promise.race([this.#telling, scheduler.wait(WATCH_TOLD_MAX_MS)]);
    // Asked once it counts as a watcher: what ends the session from here on finds it.
    const [isLive] = await Promise.all([this.#endUnlessLive(server, admission), told]);
    if (!isLive) return refuse({ code: "unauthorized" });
    const protocol = request.headers.get("sec-websocket-protocol") ?? "";
    const headers = { "sec-websocket-protocol": protocol };
    return new Response(null, { status: 101, webSocket: client, headers });
  }

  /** From when this returns on, nobody hears anything by what has ended. */
  endWatching(whose: WatchingEnd): void {
    const isMeant = ({ sessionId, userId }: WatcherAdmission) => {
      if (whose === "everybody") return true;
      return "userId" in whose ? whose.userId === userId : whose.sessionIds.includes(sessionId);
    };
    if (this.#watchers.end(isMeant, "session_ended")) this.#watchersChanged();
  }

  /** The server stops: watchers are told to come back later. */
  drain(): void {
    this.#draining = true;
    this.#watchers.end(() => true, "going_away");
  }

  // ── Called by tunnels ──

  attend(attendance: Attendance): Watch {
    this.#roster.take(attendance, Date.now());
    return this.#watchOf(attendance.tunnelId);
  }

  news(news: CaptureNews): Watch {
    this.#watchers.tell(news);
    return this.#watchOf(news.tunnelId);
  }

  // ── Called by watchers ──

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.#watchers.message(socket, message);
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string): void {
    this.#watcherGone(socket);
    answerClose(socket, code, reason);
  }

  override webSocketError(socket: WebSocket): void {
    this.#watcherGone(socket);
  }

  // ── Called by the platform ──

  /** What ends a session tells so at once; this is for what could not be told. */
  override async alarm(): Promise<void> {
    const { admissions } = this.#watchers;
    if (admissions.length === 0) return;
    let nextMs = WATCH_SESSION_CHECK_MS;
    try {
      const live = await this.#liveSessions(admissions);
      const asked = new Set(admissions.map(({ sessionId }) => sessionId));
      const isOver = ({ sessionId }: WatcherAdmission) =>
        asked.has(sessionId) && !live.has(sessionId);
      if (this.#watchers.end(isOver, "session_ended")) this.#watchersChanged();
    } catch {
      // The platform gives up an alarm that keeps failing, and an outage can last longer.
      nextMs = WATCH_SESSION_RETRY_MS;
    }
    await this.#awaitSessionCheck(nextMs);
  }

  // ── Inside: connections ──

  async #ask(tunnelIds: string[]): Promise<void> {
    await inParallel(ATTENDANCE_ASKED_AT_ONCE, tunnelIds, (id) => {
      const asking = this.#asked.get(id) ?? this.#askOne(id);
      this.#asked.set(id, asking);
      return asking;
    });
  }

  /** A tunnel that can't be asked is believed as it was, and asked again by the next list. */
  async #askOne(tunnelId: string): Promise<void> {
    try {
      const attendance = await this.env.TUNNEL.getByName(tunnelId).attendance();
      if (attendance) this.#roster.take(attendance, Date.now());
      else this.#roster.forget(tunnelId);
    } catch {
      // Told by the list's age alone: nobody is wrongly left out.
    } finally {
      this.#asked.delete(tunnelId);
    }
  }

  // ── Inside: watching ──

  /** Tunnels that do not know yet that this watcher wants to hear of them. */
  #unheard({ tunnelId }: WatcherAdmission): string[] {
    if (this.#watchers.areThereForAll) return [];
    const wanted = tunnelId === null ? this.#roster.known() : [tunnelId];
    return wanted.filter((id) => !this.#watchers.areThereFor(id));
  }

  async #tellWatch(tunnelIds: string[]): Promise<void> {
    await inParallel(ATTENDANCE_ASKED_AT_ONCE, tunnelIds, async (id) => {
      for (let tries = 1; tries <= WATCH_TOLD_MAX_TRIES; tries++) {
        try {
          return await this.env.TUNNEL.getByName(id).setWatch(this.#watchOf(id));
        } catch {
          // Overloaded, or just restarting. One that is told nothing hears it with its agent's next coming.
        }
      }
    });
  }

  /** Tunnels that are watched no more hear it in answer to what they tell. */
  #watchersChanged(): void {
    this.ctx.storage.kv.put(VERSION_KEY, this.#version + 1);
    void this.#awaitSessionCheck(WATCH_SESSION_CHECK_MS);
  }

  async #awaitSessionCheck(waitMs: number): Promise<void> {
    if (this.#watchers.count === 0 || (await this.ctx.storage.getAlarm()) !== null) return;
    await this.ctx.storage.setAlarm(Date.now() + waitMs);
  }

  async #liveSessions(admissions: WatcherAdmission[]): Promise<Set<string>> {
    return new Set(await this.env.ROWS.liveWatchers(this.ctx.id.name ?? "", admissions));
  }

  /** A session may have ended while its watcher was on the way here. */
  async #endUnlessLive(socket: WebSocket, admission: WatcherAdmission): Promise<boolean> {
    let isLive = false;
    try {
      isLive = (await this.#liveSessions([admission])).has(admission.sessionId);
    } finally {
      if (!isLive && this.#watchers.endOne(socket, "session_ended")) this.#watchersChanged();
    }
    return isLive;
  }

  #watcherGone(socket: WebSocket): void {
    if (this.#watchers.gone(socket)) this.#watchersChanged();
  }

  get #version(): number {
    return this.ctx.storage.kv.get<number>(VERSION_KEY) ?? 0;
  }

  #watchOf(tunnelId: string): Watch {
    return { version: this.#version, isWatched: this.#watchers.areThereFor(tunnelId) };
  }
}
