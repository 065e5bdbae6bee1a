/**
 * The connections of an agent to the further objects of its tunnel, when the tunnel's visitors are spread over several. The
 * main connection, to the first object, says how many there are. Each reconnects by itself.
 */
import type { AgentHealth, Welcome } from "../../protocol/wire/frames.ts";
import { TunnelConnection, type ConnectionOptions } from "./tunnel-connection.ts";

export class ShardConnections {
  readonly #options: ConnectionOptions;
  readonly #onRefused: (visits: number) => void;
  readonly #connections = new Map<number, TunnelConnection>();
  /** Those whose last requests finish. */
  readonly #closing = new Set<TunnelConnection>();

  /**
   * @param options of the main connection.
   * @param onRefused called with the number of visits that were refused since the last call.
   */
  constructor(options: ConnectionOptions, onRefused: (visits: number) => void) {
    this.#options = options;
    this.#onRefused = onRefused;
  }

  /** Opens the connections that are missing, and closes those that are too many. */
  setCount(count: number, welcome: Welcome): void {
    for (const [shard, connection] of this.#connections) {
      if (shard < count) continue;
      this.#connections.delete(shard);
      void this.#close(connection);
    }
    for (let shard = 1; shard < count; shard++) {
      if (!this.#connections.has(shard)) this.#open(shard, welcome);
    }
  }

  /** Tells each object whether the local server accepts connections. */
  sendHealth(health: AgentHealth): void {
    for (const connection of this.#connections.values()) connection.sendHealth(health);
  }

  get openRequests(): number {
    const connections = [...this.#connections.values(), ...this.#closing];
    return connections.reduce((sum, { openRequests }) => sum + openRequests, 0);
  }

  /** Requests in flight may finish. */
  async close(): Promise<void> {
    const connections = [...this.#connections.values()];
    this.#connections.clear();
    await Promise.all(connections.map((connection) => this.#close(connection)));
  }

  async #close(connection: TunnelConnection): Promise<void> {
    this.#closing.add(connection);
    await connection.close();
    this.#closing.delete(connection);
  }

  #open(shard: number, { name: subdomain, tunnelId: tunnel }: Welcome): void {
    const { firstHeaders: _, firstQuery: __, requires: ___, ...options } = this.#options;
    const { project } = options.settings;
    const connection = new TunnelConnection({
      ...options,
      // Without the time to live, which the main connection has set.
      settings: project === undefined ? {} : { project },
      query: { ...options.query, subdomain, tunnel, shard: String(shard) },
      ownGates: [],
    });
    this.#connections.set(shard, connection);
    connection.on("refused", this.#onRefused);
    // The next welcome of the main connection opens it again.
    const forget = () => {
      if (this.#connections.get(shard) === connection) this.#connections.delete(shard);
      void connection.close();
    };
    connection.on("rejected", forget);
    connection.on("stopped", forget);
    connection.start();
  }
}
