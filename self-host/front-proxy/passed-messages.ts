/**
 * The frames on WebSockets whose bytes pass unchanged: those of agents and of other programs that the API has accepted. Only
 * what workerd stores of an incomplete message is counted.
 */
import { FrameReader, OPCODE, type FrameHandler, type FrameHead } from "./frame-reader.ts";
import type { IncompleteMessage } from "./message-memory.ts";

export class PassedMessages implements FrameHandler {
  readonly #incomplete: IncompleteMessage;
  readonly #reader = new FrameReader(this);
  #messageBytes = 0;

  constructor(incomplete: IncompleteMessage) {
    this.#incomplete = incomplete;
  }

  /** @returns false when workerd may not store so much, so that the connection must end. */
  read(bytes: Uint8Array): boolean {
    this.#reader.read(bytes);
    if (this.#messageBytes > 0) return this.#incomplete.resize(this.#messageBytes);
    this.#incomplete.clear();
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
