/**
 * Bounds what the WebSockets of a tunnel's visitors hold: messages that wait for the local server, for the visitor, or for
 * their remaining parts. A message is in memory before anything can refuse it, so a bound is kept by ending sockets: the
 * one that holds the most first.
 */
import { WEBSOCKET_MESSAGE_MAX_BYTES } from "../../../protocol/limits.ts";

const MIB = 1024 * 1024;

/** One message of the largest size, and some more for other sockets. */
export const TUNNEL_SOCKETS_MAX_BYTES = WEBSOCKET_MESSAGE_MAX_BYTES + 2 * MIB;
/** Of all tunnels whose objects share the isolate. */
export const ISOLATE_SOCKETS_MAX_BYTES = WEBSOCKET_MESSAGE_MAX_BYTES + 16 * MIB;

export interface MemoryHolder {
  /** Ends and releases what it can. Called again, it does nothing. */
  endForMemory(): void;
}

interface Total {
  bytes: number;
}

const isolate: Total = { bytes: 0 };
/** An object that the platform stops releases nothing. */
const lostTotals = new FinalizationRegistry((total: Total) => (isolate.bytes -= total.bytes));

export class SocketMemory {
  readonly #bytesByHolder = new Map<MemoryHolder, number>();
  readonly #total: Total = { bytes: 0 };

  constructor() {
    lostTotals.register(this, this.#total);
  }

  /** Sets how much one socket holds now. If that is more than before, this may end the socket that holds the most. */
  record(holder: MemoryHolder, bytes: number): void {
    const change = bytes - (this.#bytesByHolder.get(holder) ?? 0);
    if (change === 0) return;
    if (bytes === 0) this.#bytesByHolder.delete(holder);
    else this.#bytesByHolder.set(holder, bytes);
    this.#total.bytes += change;
    isolate.bytes += change;
    if (change > 0) while (this.isFull && this.#endLargest());
  }

  /** Whether the sockets hold more than they may: of this tunnel, or of all tunnels of the isolate. */
  get isFull(): boolean {
    return (
      this.#total.bytes > TUNNEL_SOCKETS_MAX_BYTES ||
      (this.#total.bytes > 0 && isolate.bytes > ISOLATE_SOCKETS_MAX_BYTES)
    );
  }

  /** @returns false when no socket could release anything: the platform has queued the rest. */
  #endLargest(): boolean {
    const before = this.#total.bytes;
    const byBytes = [...this.#bytesByHolder].sort(([, a], [, b]) => b - a);
    return byBytes.some(([holder]) => {
      holder.endForMemory();
      return this.#total.bytes < before;
    });
  }
}
