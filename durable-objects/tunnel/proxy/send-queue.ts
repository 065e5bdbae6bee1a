/**
 * The messages that were sent on a WebSocket and not read yet. `send` never waits, and no event says that the peer has
 * read. A front proxy acknowledges it. Otherwise, where the platform reports the length of its queue, that is checked
 * until it is short again.
 */
import type { Acknowledgement } from "../../../protocol/front-proxy/acknowledgements.ts";
import { MESSAGE_OVERHEAD_BYTES } from "../../../protocol/limits.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** A queue up to this length counts as empty: the next message need not wait. */
export const QUEUE_SHORT_BYTES = 16 * 1024;
/** The same for the number of messages, where they are acknowledged. */
const QUEUE_SHORT_MESSAGES = 128;
/** The bounds of the time between two checks of a long queue. It doubles while the queue does not get shorter, and halves while it does. */
const CHECK_MIN_MS = 1;
const CHECK_MAX_MS = 1_000;
/** A queue that does not get shorter for this long is stalled. */
export const STALL_MIN_MS = 3 * MINUTE_MS;
/** The platform reports only whole messages as read, so a long queue is given the time that a reader at this rate needs. */
const STALL_BYTES_PER_MS = 64;

interface SendQueueOptions {
  /** Whether what the peer has read is acknowledged. */
  isAcknowledged: boolean;
  /** The queue is short. */
  onShort(): void;
  /** The peer reads nothing, or next to nothing. */
  onStalled(): void;
}

export class SendQueue {
  readonly #socket: { readonly bufferedAmount?: number };
  readonly #options: SendQueueOptions;
  #isAcknowledged: boolean;
  /** Whether no further acknowledgement will come. */
  #isLast = false;
  /** Payload that was sent and not acknowledged. */
  #unacknowledgedBytes = 0;
  /** Messages that were sent and not acknowledged; where nothing is acknowledged, those since the queue was last short. */
  #messages = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #checkAfterMs = CHECK_MIN_MS;
  /** The length at the last check. Without credit for what is queued, hardly anything is added in between. */
  #lastLength = 0;
  #progressAtMs = 0;

  constructor(socket: Pick<WebSocket, "bufferedAmount">, options: SendQueueOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#isAcknowledged = options.isAcknowledged;
  }

  /** The payload in the queue. 0 where it is not known. */
  get bytes(): number {
    return this.#isAcknowledged ? this.#unacknowledgedBytes : (this.#socket.bufferedAmount ?? 0);
  }

  /** About how much memory the messages take; 0 while the queue is short. */
  get heldBytes(): number {
    return this.isLong || this.#isLast ? this.#length : 0;
  }

  get isLong(): boolean {
    return this.#timer !== undefined;
  }

  /** @param bytes the payload of one message. */
  recordSent(bytes: number): void {
    this.#unacknowledgedBytes += bytes;
    this.#messages += 1;
  }

  acknowledge({ bytes, messages }: Acknowledgement): void {
    if (!this.#isAcknowledged) return;
    // Before a hibernation, more may have been sent.
    this.#unacknowledgedBytes = Math.max(0, this.#unacknowledgedBytes - bytes);
    this.#messages = Math.max(0, this.#messages - messages);
    if (this.#timer === undefined || !this.#isShort) return;
    this.stop();
    this.#options.onShort();
  }

  /** From now on the length is what the platform reports. That says nothing about empty messages: all of them count. */
  ignoreAcknowledgements(): void {
    this.#isLast = this.#isAcknowledged;
    this.#isAcknowledged = false;
  }

  /** Runs `onShort` now, or as soon as the queue is short. */
  watch(): void {
    if (this.#timer !== undefined) return;
    if (this.#isShort) return this.#recordShort();
    this.#lastLength = this.#length;
    this.#progressAtMs = Date.now();
    this.#checkAfterMs = CHECK_MIN_MS;
    this.#schedule();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  get #isShort(): boolean {
    if (this.bytes > QUEUE_SHORT_BYTES) return false;
    return !this.#isAcknowledged || this.#messages <= QUEUE_SHORT_MESSAGES;
  }

  get #length(): number {
    return this.bytes + this.#messages * MESSAGE_OVERHEAD_BYTES;
  }

  #recordShort(): void {
    if (!this.#isAcknowledged && !this.#isLast) this.#messages = 0;
    this.#options.onShort();
  }

  #schedule(): void {
    this.#timer = setTimeout(() => this.#check(), this.#checkAfterMs);
  }

  #check(): void {
    this.#timer = undefined;
    if (this.#isShort) return this.#recordShort();
    const nowMs = Date.now();
    const length = this.#length;
    const hasProgress = length < this.#lastLength;
    if (hasProgress) this.#progressAtMs = nowMs;
    this.#lastLength = length;
    if (nowMs - this.#progressAtMs > STALL_MIN_MS + this.bytes / STALL_BYTES_PER_MS)
      return this.#options.onStalled();
    const factor = hasProgress ? 0.5 : 2;
    this.#checkAfterMs = Math.min(
      CHECK_MAX_MS,
      Math.max(CHECK_MIN_MS, this.#checkAfterMs * factor),
    );
    this.#schedule();
  }
}
