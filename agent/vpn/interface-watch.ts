/**
 * Identifies devices without the server's private key: `wg show` lists each peer's endpoint, and the endpoints of remote
 * clients are this agent's own sockets.
 */
import { findInterface, showEndpoints, showHandshakes, ToolError } from "./wireguard/tools.ts";

const INTERVAL_MS = 10_000;
/** Without the permission, or without `wg`, retries can't succeed. */
const FAILURES_MAX = 3;

export interface InterfaceWatchEvents {
  onEndpoint(publicKey: string, localAddress: string): void;
  onHandshake(publicKey: string, atMs: number): void;
}

export class InterfaceWatch {
  readonly #events: InterfaceWatchEvents;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(events: InterfaceWatchEvents) {
    this.#events = events;
  }

  /** @param publicKey the server's, by which its interface is found. */
  start(publicKey: string): void {
    this.stop();
    this.#isStopped = false;
    void this.#poll(publicKey, 0);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  async #poll(publicKey: string, failures: number): Promise<void> {
    try {
      const name = await findInterface(publicKey);
      if (name !== null) await this.#read(name);
      failures = 0;
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      failures += 1;
    }
    if (this.#isStopped || failures >= FAILURES_MAX) return;
    this.#timer = setTimeout(() => void this.#poll(publicKey, failures), INTERVAL_MS);
  }

  async #read(name: string): Promise<void> {
    const [endpoints, handshakes] = await Promise.all([showEndpoints(name), showHandshakes(name)]);
    if (this.#isStopped) return;
    for (const [key, endpoint] of endpoints) this.#events.onEndpoint(key, endpoint);
    for (const [key, atMs] of handshakes) this.#events.onHandshake(key, atMs);
  }
}
