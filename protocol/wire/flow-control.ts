/**
 * Flow control by credit, the same on both ends of the wire.
 *
 * A receiver grants a stream's sender as many bytes as it has consumed. The sender keeps each stream
 * within its window, and all streams together within the connection's. The first `STREAM_RESERVE_BYTES`
 * outstanding on each stream are outside the connection's window, so that streams whose readers have
 * stalled can fill it without stopping the others.
 */
import { CREDIT_GRANT_BYTES, STREAM_RESERVE_BYTES } from "../limits.ts";

interface SendState {
  outstanding: number;
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
    const outstanding = this.#streams.get(stream)?.outstanding ?? 0;
    const reserve = Math.max(0, STREAM_RESERVE_BYTES - outstanding);
    const shared = Math.max(0, this.#connectionWindow - this.#shared);
    return Math.min(this.#streamWindow - outstanding, reserve + shared);
  }

  /** Bytes that were sent on the stream and have not been credited yet. */
  outstanding(stream: number): number {
    return this.#streams.get(stream)?.outstanding ?? 0;
  }

  recordSent(stream: number, bytes: number): void {
    this.#addOutstanding(this.#getOrAdd(stream), bytes);
  }

  /** @returns false when the other end credited more than it was sent. */
  addCredit(stream: number, bytes: number): boolean {
    const outgoing = this.#streams.get(stream);
    // Credit for a stream that has ended here may still arrive.
    if (!outgoing) return true;
    if (bytes > outgoing.outstanding) return false;
    this.#addOutstanding(outgoing, -bytes);
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
      outgoing = { outstanding: 0, ended: false, wake: undefined };
      this.#streams.set(stream, outgoing);
    }
    return outgoing;
  }

  #addOutstanding(outgoing: SendState, bytes: number): void {
    const before = Math.max(0, outgoing.outstanding - STREAM_RESERVE_BYTES);
    outgoing.outstanding += bytes;
    this.#shared += Math.max(0, outgoing.outstanding - STREAM_RESERVE_BYTES) - before;
    this.#onOutstandingChanged?.(bytes);
  }

  #forgetIfWithinReserve(stream: number, outgoing: SendState): void {
    if (outgoing.outstanding <= STREAM_RESERVE_BYTES) this.#forget(stream, outgoing);
  }

  #forget(stream: number, outgoing: SendState): void {
    this.#addOutstanding(outgoing, -outgoing.outstanding);
    this.#streams.delete(stream);
  }

  /** A stream whose own window is full waits for its own credit, any other one for the connection's window. */
  #wakeIfAvailable(stream: number, outgoing: SendState): void {
    if (this.available(stream) > 0) this.#wake(stream, outgoing);
    else if (outgoing.outstanding < this.#streamWindow) this.#blocked.add(stream);
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
