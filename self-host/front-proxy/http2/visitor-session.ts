/**
 * A connection of a visitor with HTTP/2. Its requests are sent on connections of HTTP/1.1 in memory. Each of these but the
 * first counts as a further connection of the visitor, because it has a connection to workerd.
 */
import {
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { MemoryReservation } from "../../../shared/bounds/source-memory.ts";
import { MINUTE_MS } from "../../../shared/time.ts";
import { FIRST_HEAD_MAX_MS, LINGER_PAUSE_MAX_MS, UNREAD_MAX_MS } from "../limits.ts";
import { OpenConnection } from "../metrics/open-connection.ts";
import { formatRefusal, TOO_MANY_CONNECTIONS } from "../refusals.ts";
import type { VisitorConnection } from "../visitor-connection.ts";
import { createSessionOptions, SESSION_WINDOW_BYTES } from "./session-options.ts";
import { StreamConnection } from "./stream-connection.ts";

const { NGHTTP2_ENHANCE_YOUR_CALM } = constants;
/** A session with a request that takes long is asked whether its visitor is still there. */
const PING_INTERVAL_MS = MINUTE_MS;
/** Small frames are counted in blocks of so many, because a look at the clock for each would take as long as the frame. */
const SMALL_FRAMES_BLOCK = 64;

export interface VisitorSessionOptions {
  /** How many connections of its source may be open. */
  connectionsMax: number;
  /** How long the session may be without a request. */
  idleMaxMs: number;
  /** Counts a further connection of the source. @returns a function that ends the count; undefined: it is one too many. */
  admit(): (() => void) | undefined;
  /** For what waits of the body of one of its requests. */
  createReservation(): MemoryReservation;
  /** Counts small frames of bodies. @returns false: the source has sent too many. */
  takeSmallFrames(count: number): boolean;
  serve(stream: StreamConnection, handleClosed: () => void): VisitorConnection;
  onClose(): void;
}

export class VisitorSession {
  readonly metrics: OpenConnection;
  readonly #socket: Socket;
  readonly #session: ServerHttp2Session;
  readonly #options: VisitorSessionOptions;
  readonly #connections = new Map<StreamConnection, VisitorConnection>();
  /** Those on which another request may be sent. */
  readonly #idle = new Set<StreamConnection>();
  /** When the last request ended; before the first one, when the session began. */
  #idleSinceMs = performance.now();
  #hadRequest = false;
  /** Those that are not counted for the source yet. */
  #smallFrames = 0;
  #hasTooManySmallFrames = false;
  #closingSinceMs: number | undefined;
  #pingedAtMs = performance.now();
  /** When the ping that has no answer yet was sent; undefined: there is none. */
  #unansweredSinceMs: number | undefined;

  /** @param socket after its handshake, in which HTTP/2 was selected. */
  constructor(socket: Socket, options: VisitorSessionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.metrics = new OpenConnection(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => this.#handleClosed());
    this.#session = performServerHandshake(socket, createSessionOptions(options.connectionsMax));
    this.#session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    this.#session.on("error", () => undefined);
    this.#session.on(
      "stream",
      (stream: ServerHttp2Stream, _headers: unknown, _flags: number, rawHeaders: string[]) =>
        this.#serve(stream, rawHeaders),
    );
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
    for (const connection of this.#connections.values()) connection.checkDeadlines(nowMs);
    if (this.#connections.size > this.#idle.size) this.#checkAnswers(nowMs);
    else this.#checkIdleTime(nowMs);
  }

  /**
   * After an error of the visitor, nghttp2 stops reading and sending, so nothing would notice that the visitor has
   * left. But it answers no ping either, which ends the session.
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
    const connection = this.#findIdleConnection() ?? this.#connect();
    const limits = {
      reservation: this.#options.createReservation(),
      takeSmallFrame: () => this.#takeSmallFrame(),
    };
    if (connection) return connection.send(stream, rawHeaders, limits);
    const refused = new StreamConnection(() => undefined);
    refused.send(stream, rawHeaders, limits);
    refused.end(formatRefusal(TOO_MANY_CONNECTIONS));
  }

  #takeSmallFrame(): boolean {
    if (this.#hasTooManySmallFrames) return false;
    this.#smallFrames += 1;
    if (this.#smallFrames < SMALL_FRAMES_BLOCK) return true;
    this.#smallFrames = 0;
    if (this.#options.takeSmallFrames(SMALL_FRAMES_BLOCK)) return true;
    this.#hasTooManySmallFrames = true;
    // nghttp2, which is calling, still uses the session.
    setImmediate(() =>
      this.#session.destroy(new Error("too many small frames"), NGHTTP2_ENHANCE_YOUR_CALM),
    );
    return false;
  }

  #findIdleConnection(): StreamConnection | undefined {
    for (const connection of this.#idle) {
      this.#idle.delete(connection);
      if (!connection.isEnded) return connection;
    }
    return undefined;
  }

  /** The first one is counted by the session itself. */
  #connect(): StreamConnection | undefined {
    const release = this.#connections.size === 0 ? () => undefined : this.#options.admit();
    if (!release) return undefined;
    const stream = new StreamConnection(() => {
      this.#idle.add(stream);
      this.#idleSinceMs = performance.now();
    });
    const connection = this.#options.serve(stream, () => {
      release();
      this.#connections.delete(stream);
      // An idle one that ends does not prolong the time of the session.
      if (!this.#idle.delete(stream)) this.#idleSinceMs = performance.now();
    });
    this.#connections.set(stream, connection);
    return stream;
  }

  #handleClosed(): void {
    this.#session.destroy();
    for (const stream of this.#connections.keys()) stream.destroy();
    this.#options.onClose();
  }
}
