/**
 * The bytes of one direction of a TCP stream, sent in order at the rate of the token and within the receiver's
 * window. Waiting bytes are held in a few large pieces, however small the frames were.
 */
import { FRAME_DATA_MAX_BYTES } from "../../../protocol/limits.ts";
import type { Pacer } from "../proxy/pacer.ts";

const PIECE_MIN_BYTES = 4096;

interface Outlet {
  /** How many bytes may be sent now. */
  available(): number;
  /** Called when bytes wait and none may be sent: call `resume` when that changes. */
  onBlocked(resume: () => void): void;
  /** Copies the bytes before it returns. `isLast` ends the direction. */
  send(bytes: Uint8Array, isLast: boolean): void;
}

interface Piece {
  bytes: Uint8Array;
  start: number;
  end: number;
}

export class PacedBytes {
  readonly #pacer: Pacer;
  readonly #outlet: Outlet;
  #pieces: Piece[] = [];
  #length = 0;
  #hasEnded: boolean;
  #isEndSent: boolean;
  /** How many of the waiting bytes the pacer has passed. */
  #passedBytes = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isBlocked = false;
  #isCleared = false;

  /** @param hasEnded whether the direction had ended before a hibernation: then nothing more is sent. */
  constructor(pacer: Pacer, outlet: Outlet, { hasEnded }: { hasEnded: boolean }) {
    this.#pacer = pacer;
    this.#outlet = outlet;
    this.#hasEnded = hasEnded;
    this.#isEndSent = hasEnded;
  }

  /** How many bytes wait. */
  get length(): number {
    return this.#length;
  }

  /** @param bytes a view into a message: bytes that cannot be sent at once are copied. */
  push(bytes: Uint8Array, isLast: boolean): void {
    if (this.#isCleared) return;
    this.#hasEnded ||= isLast;
    this.#length += bytes.byteLength;
    if (this.#pieces.length > 0) {
      this.#append(bytes);
      this.#pump();
      return;
    }
    // Sent from the message itself, as far as possible.
    this.#pieces = [{ bytes, start: 0, end: bytes.byteLength }];
    this.#pump();
    const [rest] = this.#pieces;
    this.#pieces = [];
    if (rest) this.#append(rest.bytes.subarray(rest.start, rest.end));
  }

  /** Drops all waiting bytes. */
  clear(): void {
    this.#isCleared = true;
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pieces = [];
    this.#length = 0;
  }

  #pump(): void {
    while (!this.#isCleared && this.#timer === undefined && !this.#isBlocked) {
      if (this.#length === 0) return this.#sendEnd();
      const available = this.#outlet.available();
      if (available <= 0) return this.#block();
      const bytes = Math.min(this.#length, available, FRAME_DATA_MAX_BYTES);
      if (bytes > this.#passedBytes && !this.#reserve(bytes)) return;
      this.#sendFirst(bytes);
    }
  }

  #block(): void {
    this.#isBlocked = true;
    this.#outlet.onBlocked(() => {
      this.#isBlocked = false;
      this.#pump();
    });
  }

  /** @returns whether the bytes may pass now; otherwise a timer continues. */
  #reserve(bytes: number): boolean {
    const waitMs = this.#pacer.reserve(bytes - this.#passedBytes, Date.now());
    this.#passedBytes = bytes;
    if (waitMs === 0) return true;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#pump();
    }, waitMs);
    return false;
  }

  #sendFirst(atMost: number): void {
    const piece = this.#pieces[0]!;
    if (piece.start === piece.end) {
      this.#pieces.shift();
      return;
    }
    const part = piece.bytes.subarray(piece.start, Math.min(piece.end, piece.start + atMost));
    piece.start += part.byteLength;
    if (piece.start === piece.end) this.#pieces.shift();
    this.#length -= part.byteLength;
    this.#passedBytes = Math.max(0, this.#passedBytes - part.byteLength);
    const isLast = this.#hasEnded && this.#length === 0;
    if (isLast) this.#isEndSent = true;
    this.#outlet.send(part, isLast);
  }

  #sendEnd(): void {
    if (!this.#hasEnded || this.#isEndSent) return;
    this.#isEndSent = true;
    this.#outlet.send(new Uint8Array(), true);
  }

  #append(bytes: Uint8Array): void {
    let rest = bytes;
    const last = this.#pieces.at(-1);
    if (last) {
      const room = Math.min(last.bytes.byteLength - last.end, rest.byteLength);
      last.bytes.set(rest.subarray(0, room), last.end);
      last.end += room;
      rest = rest.subarray(room);
    }
    if (rest.byteLength === 0) return;
    const wanted = Math.max(rest.byteLength, PIECE_MIN_BYTES, 2 * (last?.bytes.byteLength ?? 0));
    const own = new Uint8Array(Math.max(rest.byteLength, Math.min(wanted, FRAME_DATA_MAX_BYTES)));
    own.set(rest);
    this.#pieces.push({ bytes: own, start: 0, end: rest.byteLength });
  }
}
