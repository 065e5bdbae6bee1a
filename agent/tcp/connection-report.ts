/** Reports about the connections through a TCP tunnel: those over the relay, and those of `underpass connect`. */

export interface ConnectionReport {
  /** The visitor's address. */
  address: string;
  /** `relay`: over the public port; `connect`: with `underpass connect`. */
  via: "relay" | "connect";
  durationMs: number;
  /** Bytes from and to the visitor. */
  bytesIn: number;
  bytesOut: number;
  /** Why the local server did not answer. */
  problem?: string;
}

/**
 * Called when a connection has been opened.
 * @param read returns the connection's report at the time of the call.
 * @returns a function that must be called once, when the connection has ended.
 */
export type OnConnection = (read: () => ConnectionReport) => (problem?: string) => void;
