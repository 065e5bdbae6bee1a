/**
 * A connection of a visitor with HTTP/2. Each of its streams is served like a connection of HTTP/1.1, and counts as one if it is not
 * the only one of the session, because it also has a connection to workerd.
 */
import {
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { MemoryReservation } from "../../../shared/bounds/source-memory.ts";
import { MINUTE_MS } from "../../../shared/time.ts";
import { FIRST_HEAD_MAX_MS, LINGER_PAUSE_MAX_MS, UNREAD_MAX_MS } from "../limits.ts";
import { formatRefusal, TOO_MANY_CONNECTIONS } from "../refusals.ts";
import type { VisitorConnection } from "../visitor-connection.ts";
import { createSessionOptions } from "./session-options.ts";
import { StreamConnection } from "./stream-connection.ts";

/** A session with a request that takes long is asked whether its visitor is still there. */
const PING_INTERVAL_MS = MINUTE_MS;

export interface VisitorSessionOptions {
  /** How many connections of its source may be open. */
  connectionsMax: number;
  /** How long the session may be without a request. */
  idleMaxMs: number;
  /** Counts a further connection of the source. @returns a function that ends the count; undefined: it is one too many. */
  admit(): (() => void) | undefined;
  /** For what waits of the body of one of its requests. */
  createReservation(): MemoryReservation;
  serve(stream: StreamConnection, handleClosed: () => void): VisitorConnection;
  onClose(): void;
}

export class VisitorSession {
  readonly kind = "http";
  readonly #socket: Socket;
  readonly #session: ServerHttp2Session;
  readonly #options: VisitorSessionOptions;
  readonly #connections = new Set<VisitorConnection>();
  /** Since when there is no request. */
  #idleSinceMs = Date.now();
  #hadRequest = false;
  #closingSinceMs: number | undefined;
  #pingedAtMs = Date.now();
  /** Since when a ping is not answered. */
  #unansweredSinceMs: number | undefined;

  /** @param socket after its handshake, in which HTTP/2 was selected. */
  constructor(socket: Socket, options: VisitorSessionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on("error", () => undefined);
    socket.once("close", () => this.#handleClosed());
    this.#session = performServerHandshake(socket, createSessionOptions(options.connectionsMax));
    this.#session.on("error", () => undefined);
    this.#session.on(
      "stream",
      (stream: ServerHttp2Stream, _headers: unknown, _flags: number, rawHeaders: string[]) =>
        this.#serve(stream, rawHeaders),
    );
  }

  get bytesReceived(): number {
    return this.#socket.bytesRead;
  }

  get bytesSent(): number {
    return this.#socket.bytesWritten;
  }

  /** Whether the last response was sent. Never before `close` was called. */
  get isComplete(): boolean {
    return this.#socket.writableFinished || this.#socket.destroyed;
  }

  /** Ends the session when its running requests have ended. */
  close(): void {
    this.#session.close();
  }

  /** Called about once a second. */
  checkDeadlines(nowMs: number): void {
    for (const connection of this.#connections) connection.checkDeadlines(nowMs);
    if (this.#connections.size > 0) this.#checkAnswers(nowMs);
    else this.#checkIdleTime(nowMs);
  }

  /**
   * After an error of the visitor, nghttp2 neither reads nor sends any more, so that it would never be known that the visitor has
   * left. A ping is then not answered.
   */
  #checkAnswers(nowMs: number): void {
    if (this.#unansweredSinceMs !== undefined) {
      if (nowMs - this.#unansweredSinceMs > UNREAD_MAX_MS) this.#socket.destroy();
    } else if (nowMs - this.#pingedAtMs > PING_INTERVAL_MS && !this.#session.destroyed) {
      this.#pingedAtMs = nowMs;
      this.#unansweredSinceMs = nowMs;
      this.#session.ping((error) => {
        if (!error) this.#unansweredSinceMs = undefined;
      });
    }
  }

  #checkIdleTime(nowMs: number): void {
    const idleMaxMs = this.#hadRequest ? this.#options.idleMaxMs : FIRST_HEAD_MAX_MS;
    if (this.#closingSinceMs === undefined) {
      if (nowMs - this.#idleSinceMs <= idleMaxMs) return;
      this.#closingSinceMs = nowMs;
      this.close();
    } else if (nowMs - this.#closingSinceMs > LINGER_PAUSE_MAX_MS) this.#socket.destroy();
  }

  #serve(stream: ServerHttp2Stream, rawHeaders: readonly string[]): void {
    this.#hadRequest = true;
    // The visitor has reset it already.
    if (stream.destroyed) return void stream.on("error", () => undefined);
    const visitor = new StreamConnection(stream, rawHeaders, this.#options.createReservation());
    const release = this.#connections.size === 0 ? () => undefined : this.#options.admit();
    if (!release) return void visitor.end(formatRefusal(TOO_MANY_CONNECTIONS));
    const connection = this.#options.serve(visitor, () => {
      release();
      this.#connections.delete(connection);
      this.#idleSinceMs = Date.now();
    });
    this.#connections.add(connection);
  }

  #handleClosed(): void {
    this.#session.destroy();
    this.#options.onClose();
  }
}
