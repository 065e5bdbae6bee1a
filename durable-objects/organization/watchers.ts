/**
 * Who watches an organization's tunnels. Their sockets hibernate; while one of them is behind, a timer keeps
 * the object awake until it has caught up or is let go.
 */
import { closeQuietly } from "../close-quietly.ts";
import {
  SyncAnswer,
  WATCH_CLOSE,
  WATCH_PING,
  WATCH_PONG,
  type WatchCloseName,
} from "../../protocol/schemas/inspector/watching.ts";
import type { CaptureNews } from "../rpc.ts";
import type { WatcherAdmission } from "./admission.ts";
import { News } from "./news.ts";
import { windowBytes } from "./pace.ts";
import { Watcher } from "./watcher.ts";

/** Of one organization, each with a connection. */
const WATCHERS_MAX = 1_000;
const WATCH_BEHIND_CHECK_MS = 1_000;
/** A watcher's own messages are short; longer ones are not read. */
const WATCH_ANSWER_MAX_CHARS = 100;

export class Watchers {
  readonly #ctx: DurableObjectState;
  readonly #open = new Map<WebSocket, Watcher>();
  #checking: ReturnType<typeof setInterval> | undefined;

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(WATCH_PING, WATCH_PONG));
    for (const socket of ctx.getWebSockets()) {
      if (socket.readyState === WebSocket.OPEN) this.#open.set(socket, Watcher.resume(socket));
    }
    this.#checkThoseBehind();
  }

  get count(): number {
    return this.#open.size;
  }

  get isFull(): boolean {
    return this.#open.size >= WATCHERS_MAX;
  }

  /** Whether anybody wants to hear of this tunnel. */
  areThereFor(tunnelId: string): boolean {
    return [...this.#open.values()].some((watcher) => watcher.wants(tunnelId));
  }

  /** Whether anybody wants to hear of tunnels that may yet come. */
  get areThereForAll(): boolean {
    return [...this.#open.values()].some(({ admission }) => admission.tunnelId === null);
  }

  get admissions(): WatcherAdmission[] {
    return [...this.#open.values()].map(({ admission }) => admission);
  }

  accept(socket: WebSocket, admission: WatcherAdmission): void {
    this.#ctx.acceptWebSocket(socket);
    this.#open.set(socket, Watcher.begin(socket, admission));
  }

  tell({ tunnelId, messages, missed }: CaptureNews): void {
    const news = new News({ messages, missed });
    const each = windowBytes(this.#open.size);
    for (const watcher of this.#open.values()) {
      if (watcher.wants(tunnelId)) watcher.tell(news, each);
    }
    this.#checkThoseBehind();
  }

  /** What is no answer to a sync means nothing. */
  message(socket: WebSocket, message: string | ArrayBuffer): void {
    if (typeof message !== "string" || message.length > WATCH_ANSWER_MAX_CHARS) return;
    const answer = SyncAnswer.safeParse(jsonOf(message)).data;
    if (answer) this.#open.get(socket)?.answered(answer.n, windowBytes(this.#open.size));
  }

  /** @returns whether it was there until now. */
  gone(socket: WebSocket): boolean {
    return this.#open.delete(socket);
  }

  /** Closes those that `isMeant` says yes to. @returns whether there were any. */
  end(isMeant: (admission: WatcherAdmission) => boolean, why: WatchCloseName): boolean {
    const meant = [...this.#open].filter(([, { admission }]) => isMeant(admission));
    for (const [socket] of meant) this.endOne(socket, why);
    return meant.length > 0;
  }

  /** @returns whether it was there until now. */
  endOne(socket: WebSocket, why: WatchCloseName): boolean {
    closeQuietly(socket, WATCH_CLOSE[why], why);
    return this.gone(socket);
  }

  #checkThoseBehind(): void {
    const isNeeded = [...this.#open.values()].some(({ isBehind }) => isBehind);
    if (isNeeded) {
      this.#checking ??= setInterval(() => this.#check(), WATCH_BEHIND_CHECK_MS);
    } else if (this.#checking !== undefined) {
      clearInterval(this.#checking);
      this.#checking = undefined;
    }
  }

  #check(): void {
    const each = windowBytes(this.#open.size);
    for (const [socket, watcher] of this.#open) {
      if (watcher.isBehind && !watcher.check(each)) this.endOne(socket, "too_slow");
    }
    this.#checkThoseBehind();
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
