/**
 * Joins two sockets: what one receives the other sends, with backpressure both ways. An end of one side (FIN)
 * ends that direction alone, as TCP does it; a reset or a lost connection resets the other side.
 */
import type { Socket } from "node:net";
import type { PacedStream, RatePacer } from "./rate-pacer.ts";

/** Sockets that are spliced have small buffers: a stalled reader holds no more than this and one read. */
export const SPLICED_SOCKET_BUFFER_BYTES = 16 * 1024;

export interface SpliceOptions {
  /** Of what the first socket receives, and of what the second does. */
  pacers?: { fromFirst: RatePacer; fromSecond: RatePacer };
  /** Both sockets are closed. */
  closed(): void;
}

export class Splice {
  readonly #first: Socket;
  readonly #second: Socket;
  readonly #fromFirst: Direction;
  readonly #fromSecond: Direction;
  readonly #options: SpliceOptions;
  #open = 2;

  /** @param first both must have been made with `allowHalfOpen`. */
  constructor(first: Socket, second: Socket, options: SpliceOptions) {
    this.#first = first;
    this.#second = second;
    this.#options = options;
    this.#fromFirst = new Direction(first, second, options.pacers?.fromFirst);
    this.#fromSecond = new Direction(second, first, options.pacers?.fromSecond);
    this.#watch(first, second);
    this.#watch(second, first);
  }

  /** Bytes received from the first socket. */
  get bytesFromFirst(): number {
    return this.#fromFirst.bytes;
  }

  get bytesFromSecond(): number {
    return this.#fromSecond.bytes;
  }

  /** Ends both sides at once, with resets. */
  reset(): void {
    reset(this.#first);
    reset(this.#second);
  }

  #watch(socket: Socket, other: Socket): void {
    // The close event that follows says the same.
    socket.on("error", () => undefined);
    socket.on("close", (hadError) => {
      const isComplete = !hadError && socket.readableEnded && socket.writableFinished;
      if (!isComplete) reset(other);
      this.#open -= 1;
      if (this.#open > 0) return;
      this.#fromFirst.end();
      this.#fromSecond.end();
      this.#options.closed();
    });
    if (socket.destroyed) reset(other);
  }
}

class Direction {
  bytes = 0;
  readonly #source: Socket;
  readonly #pace: PacedStream | undefined;
  #isBlocked = false;
  #isPaced = false;

  constructor(source: Socket, destination: Socket, pacer: RatePacer | undefined) {
    this.#source = source;
    this.#pace = pacer?.stream(() => {
      this.#isPaced = false;
      this.#resume();
    });
    source.on("data", (chunk: Buffer) => {
      this.bytes += chunk.length;
      this.#isBlocked = !destination.write(chunk);
      if (this.#pace) this.#isPaced = !this.#pace.passed(chunk.length);
      if (this.#isBlocked || this.#isPaced) source.pause();
    });
    source.on("end", () => destination.end());
    destination.on("drain", () => {
      this.#isBlocked = false;
      this.#resume();
    });
    source.resume();
  }

  end(): void {
    this.#pace?.end();
  }

  #resume(): void {
    if (!this.#isBlocked && !this.#isPaced) this.#source.resume();
  }
}

/** Ends a connection with a TCP reset where that is possible: inside TLS, and while a FIN is on its way, it is not. */
export function reset(socket: Socket): void {
  if (socket.destroyed) return;
  const isShuttingDown = socket.writableEnded && !socket.writableFinished;
  if ("encrypted" in socket || isShuttingDown) socket.destroy();
  else socket.resetAndDestroy();
}
