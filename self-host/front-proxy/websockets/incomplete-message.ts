/** Counts the bytes that workerd stores of a WebSocket message until its last byte arrives. */
import { FRAME_MIN_BYTES } from "../limits.ts";
import { OPCODE, type FrameHead } from "./frame-reader.ts";
import type { MemoryReservation } from "../../../shared/bounds/source-memory.ts";

export class IncompleteMessage {
  readonly #reservation: MemoryReservation;
  #bytes = 0;

  constructor(reservation: MemoryReservation) {
    this.#reservation = reservation;
  }

  addPayload(part: Uint8Array, { opcode }: FrameHead): void {
    if (opcode < OPCODE.close) this.#bytes += part.length;
  }

  endFrame({ opcode, isFinal, payloadBytes }: FrameHead): void {
    if (opcode >= OPCODE.close) return;
    this.#bytes = isFinal ? 0 : this.#bytes + Math.max(0, FRAME_MIN_BYTES - payloadBytes);
  }

  /** Nothing more of the message is read. */
  giveUp(): void {
    this.#bytes = 0;
    this.#reservation.clear();
  }

  /** Called after each read. @returns false when workerd may not store as many bytes. */
  reserve(): boolean {
    if (this.#bytes > 0) return this.#reservation.resize(this.#bytes);
    this.#reservation.clear();
    return true;
  }
}
