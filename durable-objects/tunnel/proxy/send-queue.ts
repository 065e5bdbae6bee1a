/**
 * The messages that were sent on a WebSocket and not read yet. `send` never waits, and no event says that the peer has read. A front proxy
 * acknowledges it. Otherwise, where the platform reports the length of its queue, that is checked until it is short again.
 */
import { MINUTE_MS } from "../../../shared/time.ts";

/** Up to this length a queue counts as read: the next message needs not wait. */
export const QUEUE_SHORT_BYTES = 16 * 1024;
/** The first check of a long queue comes after this time, each further one later by as much again, up to the maximum. */
const CHECK_MIN_MS = 1;
const CHECK_MAX_MS = 1_000;
/** A queue that does not get shorter for this long is stalled. */
export const STALL_MIN_MS = 3 * MINUTE_MS;
/** The platform reports a message only as a whole, so a long queue gets as much longer as a slow reader needs. */
const STALL_BYTES_PER_MS = 64;

export interface SendQueueEvents {
  /** The queue is short. */
  onShort(): void;
  /** The peer reads nothing, or next to nothing. */
  onStalled(): void;
}

export class SendQueue {
  readonly #socket: { readonly bufferedAmount?: number };
  readonly #events: SendQueueEvents;
  /** Payload bytes that were sent and not acknowledged; undefined where nothing is acknowledged. */
  #unacknowledgedBytes: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #checkAfterMs = CHECK_MIN_MS;
  /** The length at the last check. Without credit for what is queued, hardly anything is added in between. */
  #lastBytes = 0;
  #progressAtMs = 0;

  /** @param isAcknowledged whether what the peer has read is acknowledged. */
  constructor(socket: WebSocket, isAcknowledged: boolean, events: SendQueueEvents) {
    this.#socket = socket;
    this.#events = events;
    if (isAcknowledged) this.#unacknowledgedBytes = 0;
  }

  /** 0 where it is not known. */
  get bytes(): number {
    return this.#unacknowledgedBytes ?? this.#socket.bufferedAmount ?? 0;
  }

  get isLong(): boolean {
    return this.#timer !== undefined;
  }

  recordSent(bytes: number): void {
    if (this.#unacknowledgedBytes !== undefined) this.#unacknowledgedBytes += bytes;
  }

  acknowledge(bytes: number): void {
    // Before a hibernation, more may have been sent.
    this.#unacknowledgedBytes = Math.max(0, (this.#unacknowledgedBytes ?? 0) - bytes);
    if (this.#timer === undefined || this.bytes > QUEUE_SHORT_BYTES) return;
    this.stop();
    this.#events.onShort();
  }

  /** From now on the length is what the platform reports. */
  ignoreAcknowledgements(): void {
    this.#unacknowledgedBytes = undefined;
  }

  /** Runs `onShort` now, or as soon as the queue is short. */
  watch(): void {
    if (this.#timer !== undefined) return;
    if (this.bytes <= QUEUE_SHORT_BYTES) return this.#events.onShort();
    this.#lastBytes = this.bytes;
    this.#progressAtMs = Date.now();
    this.#checkAfterMs = CHECK_MIN_MS;
    this.#schedule();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    this.#timer = setTimeout(() => this.#check(), this.#checkAfterMs);
  }

  #check(): void {
    this.#timer = undefined;
    const { bytes } = this;
    if (bytes <= QUEUE_SHORT_BYTES) return this.#events.onShort();
    const nowMs = Date.now();
    const hasProgress = bytes < this.#lastBytes;
    if (hasProgress) this.#progressAtMs = nowMs;
    this.#lastBytes = bytes;
    if (nowMs - this.#progressAtMs > STALL_MIN_MS + bytes / STALL_BYTES_PER_MS)
      return this.#events.onStalled();
    const factor = hasProgress ? 0.5 : 2;
    this.#checkAfterMs = Math.min(
      CHECK_MAX_MS,
      Math.max(CHECK_MIN_MS, this.#checkAfterMs * factor),
    );
    this.#schedule();
  }
}
