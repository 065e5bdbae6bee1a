/**
 * Captured requests as they happen: `GET /inspector/ws` (docs/protocols/live-view.md). It reconnects until it is closed.
 * Requests that ended before it was connected have to be read from the list.
 */
import {
  WATCH_BEARER_PREFIX,
  WATCH_PING,
  WATCH_PING_INTERVAL_MS,
  WATCH_PONG,
  WATCH_PROTOCOL,
} from "../../protocol/captures/watch-protocol.ts";
import type { WatchMessage } from "../../protocol/captures/watch-protocol.ts";
import { getFreshToken } from "../api/session.ts";
import type { CaptureWatchEvents } from "./capture-store.ts";

/** After a sleep, a connection that does not answer within this time is dead. */
const PONG_WAIT_MS = 5_000;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 20_000;

export class CaptureWatch {
  readonly #events: CaptureWatchEvents;
  #socket: WebSocket | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #pongTimer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #isClosed = false;

  constructor(events: CaptureWatchEvents) {
    this.#events = events;
  }

  start(): void {
    window.addEventListener("online", this.#checkConnection);
    document.addEventListener("visibilitychange", this.#checkConnection);
    void this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    window.removeEventListener("online", this.#checkConnection);
    document.removeEventListener("visibilitychange", this.#checkConnection);
    clearTimeout(this.#retry);
    this.#disconnect();
  }

  async #connect(): Promise<void> {
    this.#retry = undefined;
    try {
      const token = await getFreshToken();
      // Without a token, the user has signed out.
      if (token !== null && !this.#isClosed) this.#open(token);
    } catch {
      this.#retryLater();
    }
  }

  #open(token: string): void {
    const url = new URL("/inspector/ws?batch=1", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url, [WATCH_PROTOCOL, WATCH_BEARER_PREFIX + token]);
    this.#socket = socket;
    socket.addEventListener("open", () => this.#handleOpen(socket));
    socket.addEventListener("message", ({ data }) => this.#receive(socket, String(data)));
    socket.addEventListener("close", () => {
      if (this.#socket === socket) this.#handleClose();
    });
  }

  #handleOpen(socket: WebSocket): void {
    if (this.#socket !== socket) return;
    this.#failures = 0;
    // The server is slow to close a connection on which the client has never sent anything.
    socket.send(WATCH_PING);
    this.#heartbeat = setInterval(() => this.#ping(), WATCH_PING_INTERVAL_MS);
    this.#events.onOpen();
  }

  #receive(socket: WebSocket, text: string): void {
    if (this.#socket !== socket) return;
    clearTimeout(this.#pongTimer);
    this.#pongTimer = undefined;
    if (text === WATCH_PONG) return;
    const message = JSON.parse(text) as WatchMessage;
    if (!("type" in message)) this.#events.onCaptures([message]);
    else if (message.type === "requests") this.#events.onCaptures(message.requests);
    else if (message.type === "missed") this.#events.onMissed();
    else socket.send(text);
  }

  /** After a sleep, or when the network is back: connects at once, or finds out whether the connection still works. */
  readonly #checkConnection = (): void => {
    if (document.visibilityState === "hidden" || !navigator.onLine) return;
    if (this.#socket?.readyState === WebSocket.OPEN) return this.#ping();
    if (this.#retry === undefined) return;
    clearTimeout(this.#retry);
    void this.#connect();
  };

  #ping(): void {
    this.#socket?.send(WATCH_PING);
    this.#pongTimer ??= setTimeout(() => this.#handleClose(), PONG_WAIT_MS);
  }

  #handleClose(): void {
    const wasOpen = this.#heartbeat !== undefined;
    this.#disconnect();
    if (wasOpen) this.#events.onClose();
    this.#retryLater();
  }

  #disconnect(): void {
    clearInterval(this.#heartbeat);
    clearTimeout(this.#pongTimer);
    this.#heartbeat = undefined;
    this.#pongTimer = undefined;
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }

  #retryLater(): void {
    if (this.#isClosed || this.#retry !== undefined) return;
    const longest = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#retry = setTimeout(() => void this.#connect(), longest * (0.5 + Math.random() / 2));
  }
}
