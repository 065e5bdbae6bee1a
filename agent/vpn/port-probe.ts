/**
 * Checks whether something listens on a local UDP port before a client needs it. It sends a datagram of one byte, which
 * WireGuard ignores, and which the system answers with ECONNREFUSED when nothing listens.
 */
import { createSocket, type Socket } from "node:dgram";
import { closeSocket } from "../relay-client/udp-socket.ts";

/** The system answers within microseconds. */
const REFUSAL_MAX_MS = 250;
const INTERVAL_MS = 5_000;
/** Shorter while nothing listens, so that clients can connect soon after the server has started. */
const RETRY_INTERVAL_MS = 2_000;

export class PortProbe {
  readonly #onResult: (isListening: boolean) => void;
  #timer: NodeJS.Timeout | undefined;
  #socket: Socket | undefined;
  #port = 0;

  constructor(onResult: (isListening: boolean) => void) {
    this.#onResult = onResult;
  }

  start(port: number): void {
    this.#port = port;
    this.#check();
  }

  stop(): void {
    clearTimeout(this.#timer);
    if (this.#socket) closeSocket(this.#socket);
    this.#socket = undefined;
  }

  #check(): void {
    this.stop();
    const socket = createSocket("udp4");
    this.#socket = socket;
    let isRefused = false;
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") isRefused = true;
    });
    socket.connect(this.#port, "127.0.0.1", (error?: Error) => {
      if (!error) socket.send(Buffer.of(0));
    });
    this.#timer = setTimeout(() => {
      closeSocket(socket);
      this.#socket = undefined;
      this.#timer = setTimeout(() => this.#check(), isRefused ? RETRY_INTERVAL_MS : INTERVAL_MS);
      this.#onResult(!isRefused);
    }, REFUSAL_MAX_MS);
  }
}
