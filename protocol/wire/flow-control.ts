/**
 * Flow control by credit, the same on both ends of the wire.
 *
 * A receiver grants a stream's sender as many bytes as it has consumed. The sender keeps each stream
 * within its window, and all streams together within the connection's. The first `STREAM_RESERVE_BYTES`
 * outstanding on each stream are outside the connection's window, so that streams whose readers have
 * stalled can fill it without stopping the others.
 */
import { CREDIT_GRANT_BYTES, MESSAGE_OVERHEAD_BYTES, STREAM_RESERVE_BYTES } from "../limits.ts";

interface SendState {
  /** Payload that was sent and not credited. */
  payload: number;
  /** What the WebSocket messages of this payload count besides it. */
  overhead: number;
  ended: boolean;
  wake: (() => void) | undefined;
}

/** How much one end may still send. While its socket has a backlog, it may send nothing. */
export class SendWindows {
  readonly #streamWindow: number;
  readonly #connectionWindow: number;
  readonly #onOutstandingChanged: ((bytes: number) => void) | undefined;
  readonly #streams = new Map<number, SendState>();
  /** Streams that wait for the connection's window or its socket, in the order in which they began to wait. */
  readonly #blocked = new Set<number>();
  #isPaused = false;
  /** Outstanding bytes beyond each stream's reserve. */
  #shared = 0;

  /** @param onOutstandingChanged is called with the difference, which may be negative. */
  constructor(
    streamWindow: number,
    connectionWindow: number,
    onOutstandingChanged?: (bytes: number) => void,
  ) {
    this.#streamWindow = streamWindow;
    this.#connectionWindow = connectionWindow;
    this.#onOutstandingChanged = onOutstandingChanged;
  }

  /** How many bytes may be sent on the stream now. */
  available(stream: number): number {
    if (this.#isPaused) return 0;
    const outgoing = this.#streams.get(stream);
    const outstanding = outgoing ? countOutstanding(outgoing) : 0;
    const reserve = Math.max(0, STREAM_RESERVE_BYTES - outstanding);
    const shared = Math.max(0, this.#connectionWindow - this.#shared);
    return Math.min(this.#streamWindow - outstanding, reserve + shared);
  }

  /** Payload that was sent on the stream and has not been credited yet. */
  outstanding(stream: number): number {
    return this.#streams.get(stream)?.payload ?? 0;
  }

  recordSent(stream: number, bytes: number): void {
    this.#addOutstanding(this.#getOrAdd(stream), bytes, 0);
  }

  /**
   * Records a WebSocket message, or a part of one. It counts more than its payload: otherwise a window of tiny messages would keep
   * the other end busy for seconds, with all other streams of the connection behind them. Nothing is credited for empty ones, so
   * they count only beside others.
   */
  recordMessageSent(stream: number, bytes: number): void {
    const outgoing = this.#getOrAdd(stream);
    const isCredited = outgoing.payload + bytes > 0;
    this.#addOutstanding(outgoing, bytes, isCredited ? MESSAGE_OVERHEAD_BYTES : 0);
  }

  /** @returns false when the other end credited more than it was sent. */
  addCredit(stream: number, bytes: number): boolean {
    const outgoing = this.#streams.get(stream);
    // Credit for a stream that has ended here may still arrive.
    if (!outgoing) return true;
    const { payload, overhead } = outgoing;
    if (bytes > payload) return false;
    // The messages that the other end has consumed are not known, only their bytes.
    const freed = payload === 0 ? 0 : Math.ceil((overhead * bytes) / payload);
    this.#addOutstanding(outgoing, -bytes, -freed);
    if (outgoing.ended) this.#forgetIfWithinReserve(stream, outgoing);
    else if (outgoing.wake) this.#wakeIfAvailable(stream, outgoing);
    this.#wakeBlocked();
    return true;
  }

  /** Calls `resume` once, when the stream may send again. A later call replaces an earlier one. */
  whenAvailable(stream: number, resume: () => void): void {
    if (this.available(stream) > 0) return resume();
    const outgoing = this.#isPaused ? this.#getOrAdd(stream) : this.#streams.get(stream);
    if (!outgoing) return resume();
    outgoing.wake = resume;
    this.#wakeIfAvailable(stream, outgoing);
  }

  /** Stops all streams, because the socket has more to send than it should. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Waiting streams continue in turn, until one of them fills the socket again. */
  resume(): void {
    this.#isPaused = false;
    this.#wakeBlocked();
  }

  /** The sender has finished; outstanding bytes still count until the other end has consumed them. */
  end(stream: number): void {
    const outgoing = this.#streams.get(stream);
    if (!outgoing) return;
    outgoing.ended = true;
    this.#forgetIfWithinReserve(stream, outgoing);
  }

  /** The stream was reset: neither end holds bytes of it. A waiting sender is resumed and finds the stream gone. */
  drop(stream: number): void {
    const outgoing = this.#streams.get(stream);
    if (!outgoing) return;
    this.#forget(stream, outgoing);
    this.#wake(stream, outgoing);
    this.#wakeBlocked();
  }

  /** The connection was lost: all waiting senders are resumed. */
  close(): void {
    for (const stream of [...this.#streams.keys()]) this.drop(stream);
  }

  #getOrAdd(stream: number): SendState {
    let outgoing = this.#streams.get(stream);
    if (!outgoing) {
      outgoing = { payload: 0, overhead: 0, ended: false, wake: undefined };
      this.#streams.set(stream, outgoing);
    }
    return outgoing;
  }

  #addOutstanding(outgoing: SendState, payload: number, overhead: number): void {
    const before = countBeyondReserve(outgoing);
    outgoing.payload += payload;
    outgoing.overhead += overhead;
    this.#shared += countBeyondReserve(outgoing) - before;
    this.#onOutstandingChanged?.(payload + overhead);
  }

  #forgetIfWithinReserve(stream: number, outgoing: SendState): void {
    if (outgoing.payload <= STREAM_RESERVE_BYTES) this.#forget(stream, outgoing);
  }

  #forget(stream: number, outgoing: SendState): void {
    this.#addOutstanding(outgoing, -outgoing.payload, -outgoing.overhead);
    this.#streams.delete(stream);
  }

  /** A stream whose own window is full waits for its own credit, any other one for the connection's window. */
  #wakeIfAvailable(stream: number, outgoing: SendState): void {
    if (this.available(stream) > 0) this.#wake(stream, outgoing);
    else if (countOutstanding(outgoing) < this.#streamWindow) this.#blocked.add(stream);
  }

  /** Each step resumes one stream, so that a flood of small credits costs little, however many streams wait. */
  #wakeBlocked(): void {
    for (const stream of this.#blocked) {
      if (this.#isPaused || this.#shared >= this.#connectionWindow) return;
      this.#blocked.delete(stream);
      const outgoing = this.#streams.get(stream);
      if (outgoing?.wake) this.#wakeIfAvailable(stream, outgoing);
    }
  }

  #wake(stream: number, outgoing: SendState): void {
    const { wake } = outgoing;
    this.#blocked.delete(stream);
    outgoing.wake = undefined;
    wake?.();
  }
}

function countOutstanding({ payload, overhead }: SendState): number {
  return payload + overhead;
}

function countBeyondReserve(outgoing: SendState): number {
  return Math.max(0, countOutstanding(outgoing) - STREAM_RESERVE_BYTES);
}

/** The bytes that one end has received on a stream, and those of them that it has yet to credit. */
export class ReceiveWindow {
  readonly #window: number;
  #held = 0;
  #uncredited = 0;
  #total = 0;
  #ended = false;

  constructor(window: number) {
    this.#window = window;
  }

  /** @returns false when the sender went beyond its window. */
  recordReceived(bytes: number): boolean {
    this.#held += bytes;
    this.#total += bytes;
    return this.#held + this.#uncredited <= this.#window;
  }

  /**
   * The sender has finished.
   * @returns how many bytes to credit now: those that were consumed before the end, and that no later credit can include.
   */
  end(): number {
    this.#ended = true;
    return this.recordConsumed(0);
  }

  /**
   * Records that `bytes` of the received bytes are no longer held.
   * @returns how many bytes to credit now; 0 means not yet, or never.
   */
  recordConsumed(bytes: number): number {
    this.#held -= bytes;
    this.#uncredited += bytes;
    // The rest of an ended stream is credited too if it counts against the connection's window.
    const isLast = this.#ended && this.#held === 0 && this.#total > STREAM_RESERVE_BYTES;
    const due = isLast || this.#uncredited >= CREDIT_GRANT_BYTES;
    return due ? this.takeCredit() : 0;
  }

  /** Everything that can be credited, due or not: for streams that must leave nothing outstanding. */
  takeCredit(): number {
    const grant = this.#uncredited;
    this.#uncredited = 0;
    return grant;
  }
}
