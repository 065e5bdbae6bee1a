/** A connection whose WebSocket the server has accepted. */
import { STALLED_MS } from "../limits.ts";
import type { FrameAllowance } from "./frame-allowance.ts";
import type { MemoryReservation } from "../../../shared/bounds/source-memory.ts";

export interface OpenWebSocket {
  readonly kind: "visitor" | "program";
  readonly limits: WebSocketLimits;
  /** @returns how many of the bytes have passed: the others have to wait for the allowance. */
  receiveFromVisitor(bytes: Uint8Array): number;
  /** @param onWritten called when all bytes were written to the visitor. */
  receiveFromServer(bytes: Uint8Array, onWritten: () => void): void;
}

/**
 * Whether its other end reads nothing. workerd has no bound for the answers to what that end sends.
 * @param unreadSinceMs when bytes began to wait for it; undefined if none do.
 */
export function hasStalled({ kind }: OpenWebSocket, unreadSinceMs: number | undefined): boolean {
  return unreadSinceMs !== undefined && performance.now() - unreadSinceMs > STALLED_MS[kind];
}

/** What it may do to workerd. */
export interface WebSocketLimits {
  /** For the message that the visitor is sending. */
  reservation: MemoryReservation;
  /** How fast its frames pass. */
  allowance: FrameAllowance;
}

export interface WebSocketOptions extends WebSocketLimits {
  /** Whether bytes wait for the visitor. */
  hasUnsentBytes: () => boolean;
  writeToVisitor: (bytes: Uint8Array, onWritten?: () => void) => void;
  writeToServer: (pieces: readonly Uint8Array[]) => void;
  /** Ends both connections. */
  end: () => void;
  /** The same with a reset. */
  reset: () => void;
}
