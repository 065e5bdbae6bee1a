/** Bodies that visitor and local server can both compute, so that each can check what arrived. */
import { createHash } from "node:crypto";
import { createRandom } from "../../test/harness/random.ts";

const POOL_BYTES = 1024 * 1024;
const POOL = Buffer.from(createRandom(POOL_BYTES).bytes(POOL_BYTES));
/** A prime, so that two bodies rarely begin at the same place. */
const STEP = 7_919;
const PART_BYTES = 64 * 1024;

/** @returns the parts of the body number `seed`, which together have `bytes` bytes. */
export function* createBody(seed: number, bytes: number): Generator<Buffer> {
  for (let sent = 0; sent < bytes;) {
    const from = (seed * STEP + sent) % POOL_BYTES;
    const length = Math.min(PART_BYTES, bytes - sent, POOL_BYTES - from);
    yield POOL.subarray(from, from + length);
    sent += length;
  }
}

/** Compares a body with the expected one while it arrives. */
export class BodyComparison {
  readonly #received = createHash("sha256");
  readonly #expected: string;
  readonly #expectedBytes: number;
  #bytes = 0;

  constructor(seed: number, bytes: number) {
    const expected = createHash("sha256");
    for (const part of createBody(seed, bytes)) expected.update(part);
    this.#expected = expected.digest("hex");
    this.#expectedBytes = bytes;
  }

  add(part: Buffer): void {
    this.#bytes += part.length;
    this.#received.update(part);
  }

  /** @returns what is wrong with a body that was marked as whole; undefined: nothing. */
  findDifference(): string | undefined {
    if (this.#bytes !== this.#expectedBytes)
      return `${this.#bytes} bytes instead of ${this.#expectedBytes}`;
    return this.#received.digest("hex") === this.#expected ? undefined : "other bytes";
  }
}
