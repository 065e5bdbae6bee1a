/**
 * Limits all streams of one tunnel in one direction to a common rate: a token bucket whose bytes are granted to the
 * streams in turn. A stream that has used up its grant stops reading, so that TCP slows its sender down and nothing is
 * buffered here.
 */
import { toBytesPerSecond } from "../shared/bounds/bandwidth.ts";
import { SECOND_MS } from "../shared/time.ts";

const BURST_MS = 100;
/** The size of one grant, in milliseconds of the rate, and its bounds in bytes. */
const GRANT_MS = 5;
const GRANT_MIN_BYTES = 4 * 1024;
const GRANT_MAX_BYTES = 256 * 1024;

export class RatePacer {
  #bytesPerMs = 0;
  #grantBytes = 0;
  #capacity = 0;
  #balance = 0;
  #refilledAtMs = performance.now();
  #waiting: StreamAllowance[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param mbps megabits (10^6 bits) a second */
  constructor(mbps: number) {
    this.setRate(mbps);
    this.#balance = this.#capacity;
  }

  /** Applies at once, also to the streams that wait. @param mbps megabits (10^6 bits) a second. */
  setRate(mbps: number): void {
    this.#refill();
    this.#bytesPerMs = toBytesPerSecond(mbps) / SECOND_MS;
    const grant = this.#bytesPerMs * GRANT_MS;
    this.#grantBytes = Math.min(Math.max(grant, GRANT_MIN_BYTES), GRANT_MAX_BYTES);
    this.#capacity = Math.max(this.#bytesPerMs * BURST_MS, this.#grantBytes);
    this.#balance = Math.min(this.#balance, this.#capacity);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#serveWaiting();
  }

  /** For a new stream. @param resume called when the stream may continue after `consume` returned false. */
  createAllowance(resume: () => void): StreamAllowance {
    return new StreamAllowance(this, resume);
  }

  /** @returns the granted bytes; 0 when the stream has to wait for its turn, and is then granted bytes by `addGrant`. */
  request(stream: StreamAllowance): number {
    this.#refill();
    if (this.#waiting.length === 0 && this.#balance >= this.#grantBytes) {
      this.#balance -= this.#grantBytes;
      return this.#grantBytes;
    }
    this.#waiting.push(stream);
    this.#schedule();
    return 0;
  }

  /** A stream ended. @param bytes that it did not use; negative for bytes beyond its grants. */
  settle(stream: StreamAllowance, bytes: number): void {
    this.#balance = Math.min(this.#balance + bytes, this.#capacity);
    const at = this.#waiting.indexOf(stream);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  #refill(): void {
    const nowMs = performance.now();
    const earned = (nowMs - this.#refilledAtMs) * this.#bytesPerMs;
    this.#refilledAtMs = nowMs;
    this.#balance = Math.min(this.#balance + earned, this.#capacity);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#waiting.length === 0) return;
    const missing = this.#grantBytes - this.#balance;
    const inMs = Math.max(1, Math.ceil(missing / this.#bytesPerMs));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#serveWaiting();
    }, inMs);
  }

  #serveWaiting(): void {
    this.#refill();
    while (this.#waiting.length > 0 && this.#balance >= this.#grantBytes) {
      const stream = this.#waiting.shift()!;
      this.#balance -= this.#grantBytes;
      // A stream that passed a large chunk pays for it over several turns.
      if (!stream.addGrant(this.#grantBytes)) this.#waiting.push(stream);
    }
    this.#schedule();
  }
}

export class StreamAllowance {
  readonly #pacer: RatePacer;
  readonly #resume: () => void;
  #allowance = 0;

  constructor(pacer: RatePacer, resume: () => void) {
    this.#pacer = pacer;
    this.#resume = resume;
  }

  /** Records bytes that have passed. @returns whether the stream may go on reading; if not, `resume` is called later. */
  consume(bytes: number): boolean {
    this.#allowance -= bytes;
    while (this.#allowance <= 0) {
      const grant = this.#pacer.request(this);
      if (grant === 0) return false;
      this.#allowance += grant;
    }
    return true;
  }

  /** Called by the pacer. @returns whether that was enough to continue. */
  addGrant(bytes: number): boolean {
    this.#allowance += bytes;
    if (this.#allowance <= 0) return false;
    this.#resume();
    return true;
  }

  /** Called when the stream has ended: settles what it has left of its grants, or has passed beyond them. */
  end(): void {
    this.#pacer.settle(this, this.#allowance);
    this.#allowance = 0;
  }
}
