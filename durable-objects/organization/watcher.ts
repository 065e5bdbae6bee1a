/** One watcher's connection: what it wants to hear, and what it is sent of it. */
import type { WatcherAdmission } from "./admission.ts";
import {
  arrived,
  askDue,
  catchUp,
  isStuck,
  newPace,
  offer,
  skip,
  type Bounds,
  type Pace,
} from "./pace.ts";
import type { News } from "./news.ts";

/** What outlives sleep, in the attachment of the watcher's socket. */
interface WatcherAttachment extends WatcherAdmission {
  pace: Pace;
}

export class Watcher {
  readonly admission: WatcherAdmission;
  readonly #socket: WebSocket;
  readonly #pace: Pace;

  private constructor(socket: WebSocket, { pace, ...admission }: WatcherAttachment) {
    this.#socket = socket;
    this.#pace = pace;
    this.admission = admission;
  }

  static begin(socket: WebSocket, admission: WatcherAdmission): Watcher {
    const watcher = new Watcher(socket, { ...admission, pace: newPace(Date.now()) });
    watcher.#keep();
    return watcher;
  }

  static resume(socket: WebSocket): Watcher {
    return new Watcher(socket, socket.deserializeAttachment() as WatcherAttachment);
  }

  get isBehind(): boolean {
    return this.#pace.behindSinceMs !== null;
  }

  wants(tunnelId: string): boolean {
    return this.admission.tunnelId === null || this.admission.tunnelId === tunnelId;
  }

  tell(news: News, windowBytes: number): void {
    const bounds = this.#bounds(windowBytes);
    this.#catchUp(bounds);
    const told = offer(this.#pace, news.sizes, bounds);
    if (told > 0) {
      if (this.admission.isBatched) this.#send(news.batch(told));
      else for (const message of news.messages.slice(0, told)) this.#send(message);
    }
    skip(this.#pace, news.missed, bounds.nowMs);
    this.#catchUp(bounds);
    this.#ask(bounds);
    this.#keep();
  }

  /** It says how far it has read. */
  answered(n: number, windowBytes: number): void {
    const bounds = this.#bounds(windowBytes);
    arrived(this.#pace, n);
    this.#catchUp(bounds);
    this.#ask(bounds);
    this.#keep();
  }

  /** For one that is behind, from time to time. @returns false when it has to go. */
  check(windowBytes: number): boolean {
    const bounds = this.#bounds(windowBytes);
    this.#catchUp(bounds);
    this.#keep();
    return !isStuck(this.#pace, bounds);
  }

  #catchUp(bounds: Bounds): void {
    const count = catchUp(this.#pace, bounds);
    if (count > 0) this.#send(JSON.stringify({ type: "missed", count }));
  }

  #ask(bounds: Bounds): void {
    const n = askDue(this.#pace, bounds);
    if (n !== null) this.#send(JSON.stringify({ type: "sync", n }));
  }

  #bounds(windowBytes: number): Bounds {
    // Newer platforms say it.
    const { bufferedAmount: queuedBytes } = this.#socket as { bufferedAmount?: number };
    return { nowMs: Date.now(), windowBytes, queuedBytes };
  }

  #send(message: string): void {
    try {
      this.#socket.send(message);
    } catch {
      // It closed; its close event is on the way.
    }
  }

  #keep(): void {
    const attachment: WatcherAttachment = { ...this.admission, pace: this.#pace };
    this.#socket.serializeAttachment(attachment);
  }
}
