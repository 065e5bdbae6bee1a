/**
 * Counts what workerd stores of an incomplete message on the WebSocket of a program: an agent or another caller that the API
 * has accepted. The bytes themselves pass unchanged.
 */
import { FrameReader, OPCODE, type FrameHandler, type FrameHead } from "./frame-reader.ts";
import type { MessageReservation } from "./message-memory.ts";

export class ProgramMessages implements FrameHandler {
  readonly #reservation: MessageReservation;
  readonly #reader = new FrameReader(this);
  #messageBytes = 0;

  constructor(reservation: MessageReservation) {
    this.#reservation = reservation;
  }

  /** @returns false when workerd may not store so much, so that the connection must end. */
  read(bytes: Uint8Array): boolean {
    this.#reader.read(bytes);
    if (this.#messageBytes > 0) return this.#reservation.resize(this.#messageBytes);
    this.#reservation.clear();
    return true;
  }

  onHead(): boolean {
    return true;
  }

  onPayload(part: Uint8Array, { opcode }: FrameHead): boolean {
    if (opcode < OPCODE.close) this.#messageBytes += part.length;
    return true;
  }

  onEnd({ opcode, isFinal }: FrameHead): boolean {
    if (opcode < OPCODE.close && isFinal) this.#messageBytes = 0;
    return true;
  }
}
