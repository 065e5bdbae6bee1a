/** One WireGuard session after its handshake: data messages and the replay window (§5.4.6). */
import { AEAD_TAG_BYTES, decrypt, encrypt } from "./crypto.ts";
import { MESSAGE, type SessionKeys } from "./handshake.ts";

const HEADER_BYTES = 16;
export const DATA_OVERHEAD_BYTES = HEADER_BYTES + AEAD_TAG_BYTES;
const WINDOW_MESSAGES = 8_192;

export class Session {
  /** The index by which the other end addresses this session. */
  readonly index: number;
  readonly #remoteIndex: number;
  readonly #keys: SessionKeys;
  readonly #window = new ReplayWindow();
  #sent = 0;

  constructor(index: number, remoteIndex: number, keys: SessionKeys) {
    this.index = index;
    this.#remoteIndex = remoteIndex;
    this.#keys = keys;
  }

  /** A data message; without a payload it is a keepalive. */
  write(payload: Uint8Array): Uint8Array {
    const header = Buffer.alloc(HEADER_BYTES);
    header[0] = MESSAGE.data;
    header.writeUInt32LE(this.#remoteIndex, 4);
    header.writeBigUInt64LE(BigInt(this.#sent), 8);
    const encrypted = encrypt(this.#keys.send, this.#sent, payload);
    this.#sent += 1;
    return Buffer.concat([header, encrypted]);
  }

  read(message: Buffer): Uint8Array | "forged" | "replayed" {
    const counter = Number(message.readBigUInt64LE(8));
    const payload = decrypt(this.#keys.receive, counter, message.subarray(HEADER_BYTES));
    if (!payload) return "forged";
    return this.#window.accept(counter) ? payload : "replayed";
  }
}

/** Accepts each counter once, and none that is too far below the highest one. */
export class ReplayWindow {
  readonly #seen = new Set<number>();
  #highest = -1;

  accept(counter: number): boolean {
    if (counter <= this.#highest - WINDOW_MESSAGES || this.#seen.has(counter)) return false;
    this.#seen.add(counter);
    for (let old = this.#highest; old < counter; old += 1) this.#seen.delete(old - WINDOW_MESSAGES);
    this.#highest = Math.max(this.#highest, counter);
    return true;
  }
}
