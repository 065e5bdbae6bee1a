/**
 * The data connections of one association with a relay: some that are kept idle, so that visitors need not wait for a
 * connection to open, and as many more as the relay asks for.
 */
import type { Socket } from "node:net";
import { DATA_CONNECTION_BACKLOG_MAX } from "../../protocol/relay/limits.ts";
import type { VisitorHead } from "../../protocol/relay/control.ts";
import { getBackOffMs } from "../back-off.ts";
import { DataConnection, type RelayEndpoint } from "./data-connection.ts";

/** Connections that open at the same time: the listen backlog of the relay's machine is short. */
const OPENING_MAX = 128;
/** The most idle connections that the agent keeps, whatever the relay asks for. */
const IDLE_MAX = 64;

interface DataConnectionsOptions {
  endpoint: RelayEndpoint;
  /** How many idle connections to keep. */
  idleCount: number;
  onAssigned(head: VisitorHead, socket: Socket, unread: Uint8Array): void;
}

export class DataConnections {
  readonly #options: DataConnectionsOptions;
  /** Opening or idle connections. */
  readonly #connections = new Set<DataConnection>();
  #opening = 0;
  /** Requested by the relay beyond the idle ones, not yet assigned to a visitor, and not closed again by the relay. */
  #extra = 0;
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: DataConnectionsOptions) {
    this.#options = options;
    this.#fill();
  }

  /** Opens connections for visitors who wait at the relay. */
  open(count: number): void {
    this.#extra = Math.min(this.#extra + count, DATA_CONNECTION_BACKLOG_MAX);
    this.#fill();
  }

  /** Connections that were assigned to visitors stay open. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
  }

  #fill(): void {
    if (this.#isClosed || this.#retry !== undefined) return;
    const wanted = Math.min(this.#options.idleCount, IDLE_MAX) + this.#extra;
    while (this.#connections.size < wanted && this.#opening < OPENING_MAX) this.#openOne();
  }

  #openOne(): void {
    let isOpening = true;
    const opened = (): void => {
      if (isOpening) this.#opening -= 1;
      isOpening = false;
    };
    this.#opening += 1;
    const connection = new DataConnection(this.#options.endpoint, {
      onIdle: () => {
        opened();
        this.#failures = 0;
        this.#fill();
      },
      onAssigned: (head, socket, unread) => {
        this.#connections.delete(connection);
        if (this.#extra > 0) this.#extra -= 1;
        this.#fill();
        this.#options.onAssigned(head, socket, unread);
      },
      onFailed: () => {
        const wasIdle = !isOpening;
        opened();
        this.#connections.delete(connection);
        // The relay no longer needs it, for example because visitors have left.
        if (wasIdle && this.#extra > 0) this.#extra -= 1;
        else this.#retryLater();
      },
    });
    this.#connections.add(connection);
  }

  /** Connections that fail together count as one failure. */
  #retryLater(): void {
    if (this.#isClosed || this.#retry !== undefined) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#fill();
    }, getBackOffMs(this.#failures));
    this.#failures += 1;
  }
}
