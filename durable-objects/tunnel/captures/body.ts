/** The beginning of one side's body, as it passes. */
import { BODY_CAPTURE_MAX_BYTES } from "../../../protocol/limits/captures.ts";
import type { CaptureMemory } from "./memory.ts";
import type { KeptBody } from "./record.ts";

const NOTHING = new Uint8Array();

export class PassingBody {
  /** Of the whole body, kept or not. */
  size = 0;
  #chunks: Uint8Array[] = [];
  #keptBytes = 0;
  #isWhole = false;

  /** @param memory null: nothing is kept of it. */
  add(bytes: Uint8Array, memory: CaptureMemory | null): void {
    this.size += bytes.byteLength;
    // Once something is missing nothing is kept behind it.
    if (memory === null || this.#keptBytes < this.size - bytes.byteLength) return;
    const wanted = Math.min(bytes.byteLength, BODY_CAPTURE_MAX_BYTES - this.#keptBytes);
    const taken = wanted > 0 ? memory.take(wanted) : 0;
    if (taken === 0) return;
    // A copy: the message that it came in holds others' bytes too, and buffers are used again.
    this.#chunks.push(bytes.slice(0, taken));
    this.#keptBytes += taken;
  }

  /** It passed to its end. */
  end(): void {
    this.#isWhole = true;
  }

  kept(): KeptBody {
    const isCut = !this.#isWhole || this.#keptBytes < this.size;
    if (this.#chunks.length <= 1) return { bytes: this.#chunks[0] ?? NOTHING, isCut };
    const bytes = new Uint8Array(this.#keptBytes);
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.byteLength;
    }
    this.#chunks = [bytes];
    return { bytes, isCut };
  }
}
