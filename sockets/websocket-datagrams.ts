/**
 * Datagrams between agent and relay in binary WebSocket messages, while UDP is blocked. Those of one turn of the event loop
 * share messages. Datagrams that can't be sent soon are dropped: the protocols inside WireGuard tolerate a loss better than a
 * delay of seconds.
 */
import { DATAGRAM, writeDatagramHeader } from "../protocol/relay/datagrams.ts";
import { DATAGRAM_HEADER_BYTES } from "../protocol/relay/limits.ts";

/** Datagrams share a message of up to this. */
const MESSAGE_MAX_BYTES = 64 * 1024;
/** When more than this is queued, datagrams are dropped: they would arrive too late anyway. */
const QUEUE_MAX_MS = 50;
/** The same in bytes, while the rate is not known yet. */
const QUEUE_MIN_BYTES = 64 * 1024;
const RATE_WINDOW_MS = 250;
/** The length in a datagram's header has 16 bits. */
const PAYLOAD_MAX_BYTES = 0xffff;

export interface BinaryLink {
  /** Bytes that were sent and still wait in this process. */
  readonly bufferedBytes: number;
  /** @param message is owned by the link from now on. */
  sendBinary(message: Buffer): void;
}

export class WebSocketDatagramSender {
  readonly #link: BinaryLink;
  /** The rest of a message's memory: the collected datagrams, and room for others. */
  #message = Buffer.allocUnsafeSlow(0);
  #collectedBytes = 0;
  #flush: NodeJS.Immediate | undefined;
  #windowStartedAtMs = 0;
  #windowBytes = 0;
  #queueMaxBytes = QUEUE_MIN_BYTES;

  constructor(link: BinaryLink) {
    this.#link = link;
  }

  /** @returns false when too much is queued, and the datagram is dropped. */
  send(flow: number, payload: Uint8Array): boolean {
    this.#measureRate(performance.now());
    const queuedBytes = this.#link.bufferedBytes + this.#collectedBytes;
    if (queuedBytes > this.#queueMaxBytes || payload.byteLength > PAYLOAD_MAX_BYTES) return false;
    const bytes = DATAGRAM_HEADER_BYTES + payload.byteLength;
    if (this.#collectedBytes + bytes > this.#message.length) {
      this.flush();
      // The link still uses the memory of the previous message.
      this.#message = Buffer.allocUnsafeSlow(Math.max(bytes, MESSAGE_MAX_BYTES));
    }
    const header = { type: DATAGRAM.data, sequenceOrLength: payload.byteLength, flow };
    writeDatagramHeader(this.#message, this.#collectedBytes, header);
    this.#message.set(payload, this.#collectedBytes + DATAGRAM_HEADER_BYTES);
    this.#collectedBytes += bytes;
    this.#windowBytes += bytes;
    this.#flush ??= setImmediate(() => this.flush());
    return true;
  }

  /** Sends the collected datagrams now, before a message that must follow them. */
  flush(): void {
    clearImmediate(this.#flush);
    this.#flush = undefined;
    if (this.#collectedBytes === 0) return;
    this.#link.sendBinary(this.#message.subarray(0, this.#collectedBytes));
    this.#message = this.#message.subarray(this.#collectedBytes);
    this.#collectedBytes = 0;
  }

  /** The limit follows the latest rate, so that it is about the same delay at every rate. */
  #measureRate(nowMs: number): void {
    const elapsedMs = nowMs - this.#windowStartedAtMs;
    if (elapsedMs < RATE_WINDOW_MS) return;
    this.#queueMaxBytes = Math.max(QUEUE_MIN_BYTES, (this.#windowBytes / elapsedMs) * QUEUE_MAX_MS);
    this.#windowStartedAtMs = nowMs;
    this.#windowBytes = 0;
  }
}
