/**
 * The watchers of an organization's tunnels. Their sockets hibernate; while a watcher is behind, a timer keeps
 * the object awake until the watcher has caught up or is disconnected.
 */
import { closeQuietly, isOpen } from "../websockets.ts";
import {
  WATCH_CLOSE,
  WATCH_PING,
  WATCH_PONG,
  type WatchCloseName,
} from "../../protocol/captures/watch-protocol.ts";
import { SyncReply } from "../../protocol/schemas/inspector/watching.ts";
import { refillBucket, type TokenBucket } from "../../shared/bounds/token-bucket.ts";
import { parseJson } from "../../shared/json.ts";
import type { CaptureBatch } from "../rpc.ts";
import type { WatcherAdmission } from "./watcher-admission.ts";
import { getWindowBytes } from "./watcher-flow-control.ts";
import { SerializedBatch } from "./serialized-batch.ts";
import { Watcher } from "./watcher.ts";

/** Watchers of one organization, each with its own connection. */
export const WATCHERS_MAX = 1_000;
/**
 * Bounds what the watchers of an organization are sent together: each WebSocket message takes one token, and so does each KiB.
 * It takes workerd 7 µs, during which it serves no other tenant.
 */
export const DELIVERY_BUDGET = { burst: 2_000, refillMs: 0.05 };
const TOKEN_BYTES = 1_024;
const WATCH_BEHIND_CHECK_MS = 1_000;
/** A watcher sends only short messages; longer ones are ignored. */
const WATCHER_MESSAGE_MAX_CHARS = 100;

export class Watchers {
  readonly #ctx: DurableObjectState;
  readonly #open = new Map<WebSocket, Watcher>();
  #budget: TokenBucket | undefined;
  #behindTimer: ReturnType<typeof setInterval> | undefined;

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(WATCH_PING, WATCH_PONG));
    for (const socket of ctx.getWebSockets()) {
      if (isOpen(socket)) this.#open.set(socket, Watcher.restore(socket));
    }
    this.#updateBehindTimer();
  }

  get count(): number {
    return this.#open.size;
  }

  get isFull(): boolean {
    return this.#open.size >= WATCHERS_MAX;
  }

  isTunnelWatched(tunnelId: string): boolean {
    return [...this.#open.values()].some((watcher) => watcher.watches(tunnelId));
  }

  /** Whether a watcher watches all tunnels, including ones that are registered later. */
  get isEveryTunnelWatched(): boolean {
    return [...this.#open.values()].some(({ admission }) => admission.tunnelId === null);
  }

  get admissions(): WatcherAdmission[] {
    return [...this.#open.values()].map(({ admission }) => admission);
  }

  accept(socket: WebSocket, admission: WatcherAdmission): void {
    this.#ctx.acceptWebSocket(socket);
    this.#open.set(socket, Watcher.create(socket, admission));
  }

  /**
   * Sends a batch to the watchers of its tunnel. Those for whom nothing is left of the budget miss it, and are the first ones of
   * the next batch.
   */
  deliver({ tunnelId, messages, missed }: CaptureBatch): void {
    const batch = new SerializedBatch({ messages, missed });
    const windowBytes = getWindowBytes(this.#open.size);
    const budget = refillBucket(this.#budget, DELIVERY_BUDGET, Date.now());
    const served: [WebSocket, Watcher][] = [];
    for (const [socket, watcher] of this.#open) {
      if (!watcher.watches(tunnelId)) continue;
      if (budget.tokens < 1) {
        watcher.skip(batch);
        continue;
      }
      const sent = watcher.deliver(batch, windowBytes, Math.floor(budget.tokens));
      budget.tokens -= sent.messages + sent.bytes / TOKEN_BYTES;
      served.push([socket, watcher]);
    }
    this.#budget = budget;
    if (budget.tokens < 1) this.#moveToEnd(served);
    this.#updateBehindTimer();
  }

  #moveToEnd(served: [WebSocket, Watcher][]): void {
    for (const [socket, watcher] of served) {
      this.#open.delete(socket);
      this.#open.set(socket, watcher);
    }
  }

  /** A message that is no answer to a sync is ignored. */
  handleMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    if (typeof message !== "string" || message.length > WATCHER_MESSAGE_MAX_CHARS) return;
    const answer = SyncReply.safeParse(parseJson(message)).data;
    if (answer) this.#open.get(socket)?.acknowledge(answer.n, getWindowBytes(this.#open.size));
  }

  /** @returns whether the socket was a watcher's until now. */
  remove(socket: WebSocket): boolean {
    return this.#open.delete(socket);
  }

  /** @returns whether any watcher was closed. */
  closeWhere(matches: (admission: WatcherAdmission) => boolean, reason: WatchCloseName): boolean {
    const matching = [...this.#open].filter(([, { admission }]) => matches(admission));
    for (const [socket] of matching) this.close(socket, reason);
    return matching.length > 0;
  }

  /** @returns whether the socket was a watcher's until now. */
  close(socket: WebSocket, reason: WatchCloseName): boolean {
    closeQuietly(socket, WATCH_CLOSE[reason], reason);
    return this.remove(socket);
  }

  /** The timer runs while a watcher is behind. */
  #updateBehindTimer(): void {
    const isNeeded = [...this.#open.values()].some(({ isBehind }) => isBehind);
    if (isNeeded) {
      this.#behindTimer ??= setInterval(() => this.#closeStuckWatchers(), WATCH_BEHIND_CHECK_MS);
    } else if (this.#behindTimer !== undefined) {
      clearInterval(this.#behindTimer);
      this.#behindTimer = undefined;
    }
  }

  #closeStuckWatchers(): void {
    const windowBytes = getWindowBytes(this.#open.size);
    for (const [socket, watcher] of this.#open) {
      if (watcher.isBehind && !watcher.tryToCatchUp(windowBytes)) this.close(socket, "too_slow");
    }
    this.#updateBehindTimer();
  }
}
