/**
 * Identifies devices without the server's private key: `wg show` lists each peer's endpoint, and the endpoints of remote
 * clients are this agent's own sockets.
 */
import { findInterface, showEndpoints, showHandshakes, ToolError } from "./wireguard/tools.ts";

const INTERVAL_MS = 10_000;
/** Without the permission, or without `wg`, retries can't succeed. */
const FAILURES_MAX = 3;

interface InterfaceWatchEvents {
  onEndpoint(publicKey: string, localAddress: string): void;
  onHandshake(publicKey: string, atMs: number): void;
}

export class InterfaceWatch {
  readonly #events: InterfaceWatchEvents;
  #timer: NodeJS.Timeout | undefined;
  /** Ends the polls of the last `start`, including one that is running. */
  #stop = new AbortController();

  constructor(events: InterfaceWatchEvents) {
    this.#events = events;
  }

  /** @param publicKey the server's, by which its interface is found. */
  start(publicKey: string): void {
    this.stop();
    this.#stop = new AbortController();
    void this.#poll(publicKey, 0, this.#stop.signal);
  }

  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  async #poll(publicKey: string, failures: number, signal: AbortSignal): Promise<void> {
    try {
      const name = await findInterface(publicKey);
      if (name !== null) await this.#read(name, signal);
      failures = 0;
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      failures += 1;
    }
    if (signal.aborted || failures >= FAILURES_MAX) return;
    this.#timer = setTimeout(() => void this.#poll(publicKey, failures, signal), INTERVAL_MS);
  }

  async #read(name: string, signal: AbortSignal): Promise<void> {
    const [endpoints, handshakes] = await Promise.all([showEndpoints(name), showHandshakes(name)]);
    if (signal.aborted) return;
    for (const [key, endpoint] of endpoints) this.#events.onEndpoint(key, endpoint);
    for (const [key, atMs] of handshakes) this.#events.onHandshake(key, atMs);
  }
}
