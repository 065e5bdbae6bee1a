/**
 * Joins two sockets: each sends what the other receives, with backpressure in both directions. A FIN ends only its own
 * direction, as in TCP; a reset or a lost connection resets the other side.
 */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DATA_CONNECTION_KEEP_ALIVE_MS } from "../protocol/relay/limits.ts";
import type { StreamAllowance, RatePacer } from "./rate-pacer.ts";
import { setReceiver } from "./socket-reader.ts";
import { watchUnreadSocket } from "./unread-socket.ts";

/** `highWaterMark` of servers whose sockets are spliced. */
export const SPLICED_SOCKET_BUFFER_BYTES = 16 * 1024;

/** For servers that accept the connections of a TCP tunnel's visitors or clients. */
export const SPLICED_SERVER_OPTIONS = {
  allowHalfOpen: true,
  pauseOnConnect: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: DATA_CONNECTION_KEEP_ALIVE_MS,
  highWaterMark: SPLICED_SOCKET_BUFFER_BYTES,
} as const;

interface SpliceOptions {
  /** They limit the rate of the bytes read from each socket. */
  pacers?: { fromFirst: RatePacer; fromSecond: RatePacer };
  /** Bytes already read from the first socket: sent to the second one before the rest. */
  unreadFromFirst?: Uint8Array;
  /** Called when both sockets are closed. */
  onClose(): void;
}

export class Splice {
  readonly #first: Socket;
  readonly #second: Socket;
  readonly #fromFirst: Direction;
  readonly #fromSecond: Direction;
  readonly #options: SpliceOptions;
  #openSockets = 2;

  /** Both sockets are paused, and were created with `allowHalfOpen`. */
  constructor(first: Socket, second: Socket, options: SpliceOptions) {
    this.#first = first;
    this.#second = second;
    this.#options = options;
    this.#fromFirst = new Direction(first, second, options.pacers?.fromFirst);
    this.#fromSecond = new Direction(second, first, options.pacers?.fromSecond);
    this.#watch(first, second);
    this.#watch(second, first);
    this.#fromFirst.start(options.unreadFromFirst);
    this.#fromSecond.start(undefined);
  }

  /** Bytes received from the first socket. */
  get bytesFromFirst(): number {
    return this.#fromFirst.bytes;
  }

  get bytesFromSecond(): number {
    return this.#fromSecond.bytes;
  }

  /** Resets both connections at once. */
  reset(): void {
    reset(this.#first);
    reset(this.#second);
  }

  #watch(socket: Socket, other: Socket): void {
    if (socket.closed) return queueMicrotask(() => this.#handleClose(false, other));
    // The close event that follows has the same information.
    socket.on("error", () => undefined);
    socket.once("close", (hadError) => {
      const isComplete = !hadError && socket.readableEnded && socket.writableFinished;
      this.#handleClose(isComplete, other);
    });
  }

  #handleClose(isComplete: boolean, other: Socket): void {
    if (!isComplete) reset(other);
    this.#openSockets -= 1;
    if (this.#openSockets > 0) return;
    this.#fromFirst.end();
    this.#fromSecond.end();
    this.#options.onClose();
  }
}

class Direction {
  bytes = 0;
  readonly #source: Socket;
  readonly #destination: Socket;
  readonly #allowance: StreamAllowance | undefined;
  /** The kernel has not accepted all written bytes yet. */
  #isBlocked = false;
  /** The rate limit is reached. */
  #isPaced = false;

  constructor(source: Socket, destination: Socket, pacer: RatePacer | undefined) {
    this.#source = source;
    this.#destination = destination;
    this.#allowance = pacer?.createAllowance(() => {
      this.#isPaced = false;
      this.#resume();
    });
  }

  start(unread: Uint8Array | undefined): void {
    watchUnreadSocket(this.#source, () => this.#isBlocked || this.#isPaced);
    setReceiver(this.#source, (bytes) => this.#pass(bytes));
    this.#source.on("end", () => this.#destination.end());
    const shouldContinue = unread === undefined || unread.length === 0 || this.#pass(unread);
    // The event came before, if the source was read before.
    if (this.#source.readableEnded) this.#destination.end();
    else if (shouldContinue) this.#source.resume();
  }

  end(): void {
    this.#allowance?.end();
  }

  /** The next read would overwrite the bytes, so the source is paused until they are written. */
  #pass(bytes: Uint8Array): boolean {
    this.bytes += bytes.length;
    this.#destination.write(bytes, this.#handleWritten);
    this.#isBlocked = this.#destination.writableLength > 0;
    if (this.#allowance && !this.#allowance.consume(bytes.length)) this.#isPaced = true;
    return !this.#isBlocked && !this.#isPaced;
  }

  readonly #handleWritten = (): void => {
    if (!this.#isBlocked || this.#destination.writableLength > 0) return;
    this.#isBlocked = false;
    this.#resume();
  };

  #resume(): void {
    if (!this.#isBlocked && !this.#isPaced) this.#source.resume();
  }
}

/** Ends a connection with a TCP reset where that is possible: not inside TLS, not of a Unix socket, and not after a FIN. */
export function reset(socket: Duplex & { resetAndDestroy(): unknown }): void {
  if (socket.destroyed) return;
  const isShuttingDown = socket.writableEnded && !socket.writableFinished;
  if (isShuttingDown) return void socket.destroy();
  try {
    socket.resetAndDestroy();
  } catch {
    // Only Node.js knows which kind of connection a socket has, also while it is being opened: it throws for all but TCP.
    socket.destroy();
  }
}
