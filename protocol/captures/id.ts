/**
 * The ids of captured requests: UUIDs of version 7, which sort by time and end like the id of their tunnel.
 *
 *     milliseconds 48 | version 4 | count in that millisecond 12 | variant 2 | shard 4 | random 10 | end of the tunnel's id 48
 */

/** The last 12 digits of a tunnel's id, with which the ids of its captures end. Several tunnels can share them. */
export function getTunnelSuffix(tunnelId: string): string {
  return tunnelId.slice(-12);
}

export function getTunnelSuffixOfCapture(captureId: string): string {
  return captureId.slice(-12).toLowerCase();
}

/** When the request was received, in ms since the epoch. */
export function getCaptureTimeMs(captureId: string): number {
  return parseInt(captureId.slice(0, 8) + captureId.slice(9, 13), 16);
}

/** Sorts before every id of this millisecond and after every id of the millisecond before. */
export function toCaptureIdPrefix(atMs: number): string {
  const time = hex(Math.max(0, Math.floor(atMs)), 12);
  return `${time.slice(0, 8)}-${time.slice(8)}-`;
}

const COUNT_MAX = 0xfff;

/**
 * Generates the ids of the captures of one of a tunnel's objects. Each sorts after the one before, even if the clock
 * goes back.
 */
export class CaptureIdGenerator {
  readonly #tunnelSuffix: string;
  readonly #shard: number;
  readonly #random: () => number;
  #atMs = 0;
  #prefix = toCaptureIdPrefix(0);
  #count = 0;

  /**
   * @param shard below `SHARDS_MAX`: no two objects generate the same id in a millisecond.
   * @param random at least 0, less than 1: an object must not generate an id again after a restart.
   */
  constructor(tunnelId: string, shard: number, random: () => number = Math.random) {
    this.#tunnelSuffix = getTunnelSuffix(tunnelId);
    this.#shard = shard;
    this.#random = random;
  }

  next(nowMs: number): string {
    if (nowMs > this.#atMs) this.#startAt(nowMs);
    else if (this.#count < COUNT_MAX) this.#count += 1;
    else this.#startAt(this.#atMs + 1);
    const random = 0x8000 | (this.#shard << 10) | Math.floor(this.#random() * 0x400);
    const count = hex(0x7000 | this.#count, 4);
    return `${this.#prefix}${count}-${hex(random, 4)}-${this.#tunnelSuffix}`;
  }

  #startAt(atMs: number): void {
    this.#atMs = atMs;
    this.#prefix = toCaptureIdPrefix(atMs);
    this.#count = 0;
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
