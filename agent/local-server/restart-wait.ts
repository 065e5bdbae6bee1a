/**
 * Holds connections to the local server while it restarts, so that visitors wait for some seconds instead of getting errors.
 * Only attempts to connect are repeated, before anything of a request was sent: nothing is sent twice.
 */
import { SECOND_MS } from "../../shared/time.ts";

/** How long visitors wait, from the first connection that the local server refuses. */
export const RESTART_MAX_MS = 3 * SECOND_MS;
const ATTEMPT_INTERVAL_MS = 100;

/** The queue of a Unix socket is full: its server is busy, and has not stopped. */
const QUEUE_FULL = "EAGAIN";
/** ENOENT is about a Unix socket. ECONNRESET: the server went away in the TLS handshake. */
const REFUSALS = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT", QUEUE_FULL]);

export type Done<Connection> = (...result: [null, Connection] | [Error, null]) => void;
/** Tries to connect once. */
type Attempt<Connection> = (done: Done<Connection>) => void;

interface WaitingConnection {
  attempt(): void;
  fail(error: Error): void;
}

/**
 * - `unknown`: the server has not accepted a connection yet, so that nothing is known to restart.
 * - `waiting`: it refuses connections, which are held.
 * - `down`: it has refused them for too long. They fail at once, until it accepts one.
 * - `ended`: no connection waits, because the tunnel ends.
 */
type State = "unknown" | "up" | "waiting" | "down" | "ended";

export class RestartWait {
  readonly #onListeningChanged: (isListening: boolean) => void;
  #state: State = "unknown";
  /** Whether `onListeningChanged` was told that the server refuses connections, and nothing since. */
  #isReported = false;
  #endsAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The one whose turn is next comes first. */
  readonly #waiting = new Set<WaitingConnection>();
  #refusal = new Error("the local server refuses connections");

  /** @param onListeningChanged called when a server that accepted connections refuses them, and when it accepts them again. */
  constructor(onListeningChanged: (isListening: boolean) => void) {
    this.#onListeningChanged = onListeningChanged;
  }

  /**
   * @param attempt is repeated while the server restarts. @param done called once, unless the wait is canceled.
   * @returns a function that cancels the wait. An attempt that has begun still calls `done`, and is not repeated.
   */
  connect<Connection>(attempt: Attempt<Connection>, done: Done<Connection>): () => void {
    const endsAtMs = performance.now() + RESTART_MAX_MS;
    let isCanceled = false;
    const connection: WaitingConnection = {
      attempt: () =>
        attempt((...result) => {
          const [error] = result;
          if (error === null) this.reportAccepted();
          else if (!isCanceled && this.#shouldWait(error, endsAtMs))
            return void this.#waiting.add(connection);
          done(...result);
        }),
      fail: (error) => done(error, null),
    };
    // One of those that wait tries for all.
    if (this.#state === "waiting") this.#waiting.add(connection);
    else connection.attempt();
    return () => {
      isCanceled = true;
      this.#waiting.delete(connection);
    };
  }

  /** The local server has accepted a connection. */
  reportAccepted(): void {
    if (this.#state === "ended") return;
    this.#state = "up";
    if (this.#isReported) this.#onListeningChanged(true);
    this.#isReported = false;
    for (const connection of this.#takeWaiting()) connection.attempt();
  }

  /** From now on refused connections fail at once, as do those that wait. */
  end(): void {
    this.#state = "ended";
    this.#failWaiting();
  }

  #shouldWait(error: NodeJS.ErrnoException, endsAtMs: number): boolean {
    const { code = "" } = error;
    if (!REFUSALS.has(code) || performance.now() >= endsAtMs) return false;
    this.#refusal = error;
    if (this.#state === "up") this.#startWaiting(code);
    return this.#state === "waiting";
  }

  #startWaiting(code: string): void {
    this.#state = "waiting";
    this.#endsAtMs = performance.now() + RESTART_MAX_MS;
    this.#timer = setInterval(() => this.#tryAgain(), ATTEMPT_INTERVAL_MS);
    if (code === QUEUE_FULL) return;
    this.#isReported = true;
    this.#onListeningChanged(false);
  }

  #tryAgain(): void {
    if (performance.now() >= this.#endsAtMs) {
      this.#state = "down";
      return this.#failWaiting();
    }
    const [next] = this.#waiting;
    if (!next) return;
    this.#waiting.delete(next);
    next.attempt();
  }

  #failWaiting(): void {
    for (const connection of this.#takeWaiting()) connection.fail(this.#refusal);
  }

  #takeWaiting(): WaitingConnection[] {
    clearInterval(this.#timer);
    const connections = [...this.#waiting];
    this.#waiting.clear();
    return connections;
  }
}

/** @param local the local server, as it is printed. @returns a message for the user. */
export function describeListening(isListening: boolean, local: string): string {
  if (isListening) return `${local} accepts connections again`;
  const seconds = RESTART_MAX_MS / SECOND_MS;
  return `${local} refuses connections; visitors wait up to ${seconds} s for it`;
}
