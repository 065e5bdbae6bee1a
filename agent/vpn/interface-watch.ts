/**
 * Where the server's private key is not known here: `wg show` says which peer has which endpoint, and the
 * endpoints of remote clients are this agent's own sockets.
 */
import { findInterface, showEndpoints, showHandshakes, ToolError } from "./wireguard/tools.ts";

const INTERVAL_MS = 10_000;
/** Without the permission, or without `wg`, asking again would change nothing. */
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

  /** @param publicKey of the server: its interface is looked for. */
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
