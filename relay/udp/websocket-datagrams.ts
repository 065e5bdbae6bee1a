/**
 * Sends datagrams to an agent in binary WebSocket messages, while UDP is blocked. Those of one turn of the event loop
 * share a message. Datagrams that would have to wait longer are dropped.
 */
import type { WebSocket } from "ws";
import { DATAGRAM, writeDatagramHeader } from "../../protocol/relay/datagrams.ts";
import {
  DATAGRAM_HEADER_BYTES,
  WEBSOCKET_DATAGRAM_QUEUE_MAX_MS,
  WEBSOCKET_DATAGRAM_QUEUE_MIN_BYTES,
} from "../../protocol/relay/limits.ts";
import { WEBSOCKET_BATCH_MAX_BYTES } from "../limits.ts";

const RATE_WINDOW_MS = 1_000;

export class WebSocketDatagramSender {
  readonly #socket: Pick<WebSocket, "send" | "bufferedAmount">;
  #batch = Buffer.allocUnsafeSlow(0);
  #batchBytes = 0;
  #flush: NodeJS.Immediate | undefined;
  #windowStartedAtMs = 0;
  #windowBytes = 0;
  #queueMaxBytes = WEBSOCKET_DATAGRAM_QUEUE_MIN_BYTES;

  constructor(socket: Pick<WebSocket, "send" | "bufferedAmount">) {
    this.#socket = socket;
  }

  /** @param now milliseconds. @returns false when too much is queued, and the datagram is dropped. */
  add(flow: number, payload: Uint8Array, now: number): boolean {
    this.#measure(now);
    if (this.#socket.bufferedAmount + this.#batchBytes > this.#queueMaxBytes) return false;
    const length = DATAGRAM_HEADER_BYTES + payload.byteLength;
    // The length in the header has 16 bits.
    if (payload.byteLength > 0xffff) return false;
    if (this.#batchBytes + length > this.#batch.length) {
      this.flush();
      // The socket still uses the memory of the previous message.
      this.#batch = Buffer.allocUnsafeSlow(Math.max(length, WEBSOCKET_BATCH_MAX_BYTES));
    }
    writeDatagramHeader(this.#batch, this.#batchBytes, {
      type: DATAGRAM.data,
      sequenceOrLength: payload.byteLength,
      flow,
    });
    this.#batch.set(payload, this.#batchBytes + DATAGRAM_HEADER_BYTES);
    this.#batchBytes += length;
    this.#windowBytes += length;
    this.#flush ??= setImmediate(() => this.flush());
    return true;
  }

  /** Sends the batch now, before a message that must follow it. */
  flush(): void {
    clearImmediate(this.#flush);
    this.#flush = undefined;
    if (this.#batchBytes === 0) return;
    this.#socket.send(this.#batch.subarray(0, this.#batchBytes), { binary: true });
    this.#batch = this.#batch.subarray(this.#batchBytes);
    this.#batchBytes = 0;
  }

  /** The limit follows the rate of the last second, so that it is about the same delay at every rate. */
  #measure(now: number): void {
    const elapsedMs = now - this.#windowStartedAtMs;
    if (elapsedMs < RATE_WINDOW_MS) return;
    const bytesPerMs = this.#windowBytes / elapsedMs;
    this.#queueMaxBytes = Math.max(
      WEBSOCKET_DATAGRAM_QUEUE_MIN_BYTES,
      bytesPerMs * WEBSOCKET_DATAGRAM_QUEUE_MAX_MS,
    );
    this.#windowStartedAtMs = now;
    this.#windowBytes = 0;
  }
}
