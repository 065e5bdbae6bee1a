/**
 * Bounds what the WebSockets of a tunnel's visitors hold: messages that wait for the local server, for the visitor, or for
 * their remaining parts. They share the isolate's buffer with the bodies of requests and responses. A message is in memory
 * before anything can refuse it, so a bound is kept by ending sockets: the one that holds the most first.
 */
import { FairShare } from "../../../../shared/bounds/fair-share.ts";
import { WEBSOCKET_MESSAGE_MAX_BYTES } from "../../../../protocol/limits.ts";
import { createBufferShare, isBufferExceeded } from "../../buffered-bytes.ts";

const MIB = 1024 * 1024;

/** One message of the largest size, and some more for other sockets. */
export const TUNNEL_SOCKETS_MAX_BYTES = WEBSOCKET_MESSAGE_MAX_BYTES + 2 * MIB;
/** The maximum for all tunnels whose objects share the isolate. The rest of its buffer stays for bodies. */
export const ISOLATE_SOCKETS_MAX_BYTES = WEBSOCKET_MESSAGE_MAX_BYTES + 16 * MIB;

export interface MemoryHolder {
  /** Ends and releases what it can. Called again, it does nothing. */
  endForMemory(): void;
}

const isolateSockets = new FairShare(ISOLATE_SOCKETS_MAX_BYTES);

export class SocketMemory {
  readonly #bytesByHolder = new Map<MemoryHolder, number>();
  readonly #socketShare = isolateSockets.createShareFor(this);
  readonly #bufferShare = createBufferShare(this);

  /** Sets how much one socket holds now. If that is more than before, this may end the socket that holds the most. */
  record(holder: MemoryHolder, bytes: number): void {
    const change = bytes - (this.#bytesByHolder.get(holder) ?? 0);
    if (change === 0) return;
    if (bytes === 0) this.#bytesByHolder.delete(holder);
    else this.#bytesByHolder.set(holder, bytes);
    this.#socketShare.add(change);
    this.#bufferShare.add(change);
    if (change > 0) while (this.isFull && this.#endLargest());
  }

  /** Whether the sockets hold more than they may: of this tunnel, of all tunnels, or together with all bodies. */
  get isFull(): boolean {
    const { held } = this.#socketShare;
    const isIsolateFull = isolateSockets.used > ISOLATE_SOCKETS_MAX_BYTES || isBufferExceeded();
    return held > TUNNEL_SOCKETS_MAX_BYTES || (held > 0 && isIsolateFull);
  }

  /** @returns false when no socket could release anything: the platform has queued the rest. */
  #endLargest(): boolean {
    const before = this.#socketShare.held;
    const byBytes = [...this.#bytesByHolder].sort(([, a], [, b]) => b - a);
    return byBytes.some(([holder]) => {
      holder.endForMemory();
      return this.#socketShare.held < before;
    });
  }
}
