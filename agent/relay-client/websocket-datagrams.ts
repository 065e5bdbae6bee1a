/**
 * Datagrams in binary WebSocket messages, for networks that block UDP. Datagrams that can't be sent soon are dropped: the
 * protocols inside WireGuard tolerate a loss better than a delay of seconds.
 */
import {
  DATAGRAM_HEADER_BYTES,
  WEBSOCKET_DATAGRAM_QUEUE_MAX_MS,
  WEBSOCKET_DATAGRAM_QUEUE_MIN_BYTES,
} from "../../protocol/relay/limits.ts";
import { DATAGRAM, writeDatagramHeader } from "../../protocol/relay/datagrams.ts";

/** Datagrams of one turn of the event loop share messages of up to this size. */
const MESSAGE_BYTES = 32 * 1024;
const RATE_SAMPLE_MS = 250;

export interface BinaryLink {
  /** Bytes that were sent and still wait in this process. */
  readonly bufferedBytes: number;
  /** @param message is owned by the link from now on. */
  sendBinary(message: Buffer): void;
}

export class WebSocketDatagramSender {
  readonly #link: BinaryLink;
  #message: Buffer | undefined;
  #length = 0;
  #isFlushScheduled = false;
  #sentBytes = 0;
  #limitBytes = WEBSOCKET_DATAGRAM_QUEUE_MIN_BYTES;
  #sampledAtMs = 0;
  #sampledBytes = 0;

  constructor(link: BinaryLink) {
    this.#link = link;
  }

  send(flow: number, payload: Uint8Array): void {
    if (this.#link.bufferedBytes + this.#length > this.#limitBytes) {
      this.#measureRate();
      if (this.#link.bufferedBytes + this.#length > this.#limitBytes) {
        return;
      }
    }
    const size = DATAGRAM_HEADER_BYTES + payload.byteLength;
    if (this.#message && this.#length + size > this.#message.length) this.flush();
    const message = (this.#message ??= Buffer.allocUnsafeSlow(Math.max(size, MESSAGE_BYTES)));
    const header = { type: DATAGRAM.data, sequenceOrLength: payload.byteLength, flow };
    writeDatagramHeader(message, this.#length, header);
    message.set(payload, this.#length + DATAGRAM_HEADER_BYTES);
    this.#length += size;
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    setImmediate(() => {
      this.#isFlushScheduled = false;
      this.flush();
    });
  }

  /** Sends the collected datagrams, before a message that must follow them. */
  flush(): void {
    if (!this.#message || this.#length === 0) return;
    const message = this.#message.subarray(0, this.#length);
    // A nearly empty message is copied, so that the link does not hold on to the whole buffer.
    this.#link.sendBinary(this.#length < MESSAGE_BYTES / 4 ? Buffer.from(message) : message);
    if (this.#length >= MESSAGE_BYTES / 4) this.#message = undefined;
    this.#sentBytes += this.#length;
    this.#length = 0;
    if (performance.now() - this.#sampledAtMs >= RATE_SAMPLE_MS) this.#measureRate();
  }

  /** Computes the number of bytes in 50 ms from the connection's recent rate. */
  #measureRate(): void {
    const now = performance.now();
    const elapsedMs = now - this.#sampledAtMs;
    if (elapsedMs < RATE_SAMPLE_MS) return;
    const drained = this.#sentBytes - this.#link.bufferedBytes;
    const bytesPerMs = Math.max(0, drained - this.#sampledBytes) / elapsedMs;
    this.#sampledAtMs = now;
    this.#sampledBytes = drained;
    this.#limitBytes = Math.max(
      WEBSOCKET_DATAGRAM_QUEUE_MIN_BYTES,
      bytesPerMs * WEBSOCKET_DATAGRAM_QUEUE_MAX_MS,
    );
  }
}
