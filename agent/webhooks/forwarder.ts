/**
 * Forwards a receiver's deliveries to a local server: in order, one at a time, each until it is delivered or the agent
 * gives up. The receiver stores the position, so that the next start continues there.
 */
import { EventEmitter } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { explainError } from "../error-message.ts";
import type { Delivery, DeliveryPage, ReceiverState } from "../../protocol/schemas/webhooks.ts";
import { RetryableError } from "../service-api.ts";
import { getBackOffMs } from "../back-off.ts";
import { RejectionError } from "../rejection-error.ts";
import type { PostResult } from "./delivery-client.ts";
import type { DeliveryQuery } from "./receiver-api.ts";

const FORWARD_PAGE_ROWS = 50;
const FORWARD_WAIT_SECONDS = 25;
/** How often a delivery is posted to a local server that answers, but not with 2xx. */
const FORWARD_ATTEMPTS_MAX = 5;
const FORWARD_RETRY_MIN_MS = 500;
const FORWARD_RETRY_MAX_MS = 30_000;
/** How long the delivery in progress may continue after the agent was stopped. */
const FORWARD_STOP_MAX_MS = 5_000;

export interface ReceiverSource {
  find(nameOrId: string, signal: AbortSignal): Promise<ReceiverState>;
  readDeliveries(id: string, query: DeliveryQuery, signal: AbortSignal): Promise<DeliveryPage>;
  acknowledge(id: string, cursor: string, signal: AbortSignal): Promise<void>;
}

interface DeliveryTarget {
  post(delivery: Delivery, signal: AbortSignal): Promise<PostResult>;
}

interface ForwardOptions {
  /** The receiver's name or id. */
  receiver: string;
  /** `all`, or a timestamp in RFC 3339; undefined: where the last run ended. */
  since: string | undefined;
}

/** `put_aside`: the local server answered, but never with success; the next delivery follows. */
export interface DeliveryAttempt extends PostResult {
  id: string;
  receivedAt: string;
  attempt: number;
  outcome: "delivered" | "retrying" | "put_aside";
}

/** Where reading starts. */
type StartPosition = Pick<DeliveryQuery, "after" | "since">;

interface Events {
  ready: [ReceiverState];
  attempt: [DeliveryAttempt];
  disconnected: [reason: string];
  reconnected: [];
}

export class Forwarder extends EventEmitter<Events> {
  readonly #source: ReceiverSource;
  readonly #target: DeliveryTarget;
  readonly #options: ForwardOptions;
  /** Ends waiting at once; the delivery in progress may continue for `FORWARD_STOP_MAX_MS`. */
  readonly #stop = new AbortController();
  readonly #abortDelivery = new AbortController();
  #isDisconnected = false;

  constructor(source: ReceiverSource, target: DeliveryTarget, options: ForwardOptions) {
    super();
    this.#source = source;
    this.#target = target;
    this.#options = options;
  }

  /** Resolves when it was stopped. @throws RejectionError when the server rejects the agent permanently. */
  async run(): Promise<void> {
    try {
      await this.#run();
    } catch (error) {
      if (!(error instanceof StoppedError)) throw error;
    }
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#stop.abort();
    setTimeout(() => this.#abortDelivery.abort(), FORWARD_STOP_MAX_MS).unref();
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  async #run(): Promise<void> {
    const { receiver } = this.#options;
    const state = await this.#retryUntilAnswered((signal) => this.#source.find(receiver, signal));
    this.emit("ready", state);
    // A delivery is acknowledged while the next one is posted: after a crash at most two are repeated.
    let acknowledged = Promise.resolve();
    try {
      const start = await this.#findStart(state);
      let { after } = start;
      for (;;) {
        const askedAtMs = performance.now();
        const page = await this.#retryUntilAnswered((signal) =>
          this.#read(state.id, { ...start, after }, signal),
        );
        for (const delivery of page.events) {
          await this.#deliver(delivery);
          await acknowledged;
          acknowledged = this.#acknowledge(state.id, delivery.cursor);
        }
        after = page.cursor;
        // A server with too many waiting readers answers at once: pause before the next request.
        const isEarly = performance.now() - askedAtMs < FORWARD_RETRY_MIN_MS;
        if (page.events.length === 0 && isEarly) await this.#pause(FORWARD_RETRY_MIN_MS);
      }
    } finally {
      await acknowledged;
    }
  }

  /**
   * Deliveries that are not acknowledged are never skipped: acknowledging a later one would acknowledge them too.
   */
  async #findStart({ id, acknowledged }: ReceiverState): Promise<StartPosition> {
    const { since } = this.#options;
    const fromAcknowledged = { after: acknowledged, since: undefined };
    if (since === undefined) return fromAcknowledged;
    if (since === "all") return { after: "0", since: undefined };
    const query = { ...fromAcknowledged, limit: 1, waitSeconds: 0 };
    const page = await this.#retryUntilAnswered((signal) =>
      this.#source.readDeliveries(id, query, signal),
    );
    const [oldest] = page.events;
    const isOlder = oldest !== undefined && Date.parse(oldest.receivedAt) < Date.parse(since);
    return isOlder ? fromAcknowledged : { after: "0", since };
  }

  #read(receiverId: string, start: StartPosition, signal: AbortSignal): Promise<DeliveryPage> {
    const query = {
      ...start,
      limit: FORWARD_PAGE_ROWS,
      // After a disconnect the next response must come at once, to report that the agent is connected again.
      waitSeconds: this.#isDisconnected ? 0 : FORWARD_WAIT_SECONDS,
    };
    return this.#source.readDeliveries(receiverId, query, signal);
  }

  /** Resolves when it was delivered, or the agent gave up. */
  async #deliver(delivery: Delivery): Promise<void> {
    const { id, receivedAt } = delivery;
    let answers = 0;
    for (let attempt = 1; ; attempt += 1) {
      if (this.#isStopped) throw new StoppedError();
      const result = await this.#target.post(delivery, this.#abortDelivery.signal);
      const isDelivered = result.status !== null && result.status >= 200 && result.status < 300;
      if (!isDelivered && this.#isStopped) throw new StoppedError();
      // A delivery waits for as long as nothing listens; a server that refuses it may do so every time.
      if (!result.isUnsent) answers += 1;
      const isExhausted = answers >= FORWARD_ATTEMPTS_MAX;
      const outcome = isDelivered ? "delivered" : isExhausted ? "put_aside" : "retrying";
      this.emit("attempt", { id, receivedAt, attempt, outcome, ...result });
      if (outcome !== "retrying") return;
      await this.#pause(Math.min(FORWARD_RETRY_MAX_MS, FORWARD_RETRY_MIN_MS * 2 ** (attempt - 1)));
    }
  }

  /** Repeats a call of the API until it is answered. */
  async #retryUntilAnswered<Result>(
    call: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    for (let failures = 0; ; failures += 1) {
      if (this.#isStopped) throw new StoppedError();
      try {
        const result = await call(this.#stop.signal);
        if (this.#isDisconnected) this.emit("reconnected");
        this.#isDisconnected = false;
        return result;
      } catch (error) {
        if (this.#isStopped) throw new StoppedError();
        if (!(error instanceof RetryableError)) throw error;
        if (!this.#isDisconnected) this.emit("disconnected", explainError(error));
        this.#isDisconnected = true;
        await this.#pause(getBackOffMs(failures));
      }
    }
  }

  async #acknowledge(receiverId: string, cursor: string): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        await this.#source.acknowledge(receiverId, cursor, this.#abortDelivery.signal);
        return;
      } catch (error) {
        // The next read is rejected for the same reason, and reports it.
        if (error instanceof RejectionError || this.#isStopped) return;
        await delay(getBackOffMs(failures), undefined, { signal: this.#stop.signal }).catch(
          () => undefined,
        );
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => {
      throw new StoppedError();
    });
  }
}

/** Thrown to leave any step when the forwarder is stopped. */
class StoppedError extends Error {
  override name = "Stopped";
}
