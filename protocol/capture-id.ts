/**
 * The ids of captured requests: UUIDs of version 7, which sort by time and say which tunnel they are of.
 *
 *     milliseconds 48 | version 4 | count in that millisecond 12 | variant 2 | random 14 | tunnel's key 48
 */

/** What the id of a tunnel's captures ends with: the end of the tunnel's own. Others of it may share it. */
export function toCaptureKey(tunnelId: string): string {
  return tunnelId.slice(-12);
}

export function getCaptureKey(captureId: string): string {
  return captureId.slice(-12).toLowerCase();
}

/** When the request came, in ms since the epoch. */
export function getCaptureTimeMs(captureId: string): number {
  return parseInt(captureId.slice(0, 8) + captureId.slice(9, 13), 16);
}

/** Sorts before every id of this moment and after every one of the moment before. */
export function toCaptureIdPrefix(atMs: number): string {
  const time = hex(Math.max(0, Math.floor(atMs)), 12);
  return `${time.slice(0, 8)}-${time.slice(8)}-`;
}

const COUNT_MAX = 0xfff;

/** Makes the ids of one tunnel's captures. Each sorts after the one before, whatever the clock does. */
export class CaptureIds {
  readonly #key: string;
  readonly #random: () => number;
  #atMs = 0;
  #bound = toCaptureIdPrefix(0);
  #count = 0;

  /** @param random at least 0, less than 1: two lives of one object must not draw the same. */
  constructor(tunnelId: string, random: () => number = Math.random) {
    this.#key = toCaptureKey(tunnelId);
    this.#random = random;
  }

  next(nowMs: number): string {
    if (nowMs > this.#atMs) this.#startAt(nowMs);
    else if (this.#count < COUNT_MAX) this.#count += 1;
    else this.#startAt(this.#atMs + 1);
    const random = 0x8000 | Math.floor(this.#random() * 0x4000);
    const count = hex(0x7000 | this.#count, 4);
    return `${this.#bound}${count}-${hex(random, 4)}-${this.#key}`;
  }

  #startAt(atMs: number): void {
    this.#atMs = atMs;
    this.#bound = toCaptureIdPrefix(atMs);
    this.#count = 0;
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
