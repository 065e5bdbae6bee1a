/**
 * Brings a receiver's deliveries to a local server: in order, one at a time, until each was taken. How far
 * it got is the receiver's to remember, so that the next start goes on from there.
 */
import { EventEmitter } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Delivery, DeliveryPage, ReceiverState } from "../../protocol/schemas/webhooks.ts";
import { UnreachableError } from "../service-api.ts";
import { backOff, RejectionError } from "../tunnel-connection.ts";
import type { PostResult } from "./local-server.ts";
import type { DeliveryQuery } from "./receiver-api.ts";

const FORWARD_PAGE_ROWS = 50;
const FORWARD_WAIT_SECONDS = 25;
/** How often a local server that answers, and not with 2xx, is asked about one delivery. */
const FORWARD_ATTEMPTS_MAX = 5;
const FORWARD_RETRY_MIN_MS = 500;
const FORWARD_RETRY_MAX_MS = 30_000;
/** How long the delivery in progress gets when the agent is stopped. */
const FORWARD_STOP_MAX_MS = 5_000;

export interface ReceiverSource {
  find(nameOrId: string, signal: AbortSignal): Promise<ReceiverState>;
  events(id: string, reading: DeliveryQuery, signal: AbortSignal): Promise<DeliveryPage>;
  acknowledge(id: string, cursor: string, signal: AbortSignal): Promise<void>;
}

export interface DeliveryTarget {
  post(delivery: Delivery, signal: AbortSignal): Promise<PostResult>;
}

export interface ForwardOptions {
  /** Its name or id. */
  receiver: string;
  /** `all`, or a moment in RFC 3339. undefined: from where the last run got to. */
  since: string | undefined;
}

/** `put_aside`: the local server answered, and never with success. The next one's turn comes. */
export interface DeliveryAttempt extends PostResult {
  id: string;
  receivedAt: string;
  attempt: number;
  outcome: "delivered" | "retrying" | "put_aside";
}

/** Where reading begins. */
type StartPosition = Pick<DeliveryQuery, "after" | "since">;

interface Events {
  ready: [ReceiverState];
  handled: [DeliveryAttempt];
  disconnected: [reason: string];
  reconnected: [];
}

export class Forwarder extends EventEmitter<Events> {
  readonly #source: ReceiverSource;
  readonly #target: DeliveryTarget;
  readonly #options: ForwardOptions;
  /** Ends what waits; what is being delivered gets a little longer. */
  readonly #stop = new AbortController();
  readonly #abortDelivery = new AbortController();
  #isDisconnected = false;

  constructor(source: ReceiverSource, target: DeliveryTarget, options: ForwardOptions) {
    super();
    this.#source = source;
    this.#target = target;
    this.#options = options;
  }

  /** Resolves when it was stopped. @throws Rejected when the server refuses for good. */
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
    // Of one delivery while the next is under way: whoever dies repeats two of them at the most.
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
        // A server that has too many readers to let them wait is not asked again at once.
        const isEarly = performance.now() - askedAtMs < FORWARD_RETRY_MIN_MS;
        if (page.events.length === 0 && isEarly) await this.#pause(FORWARD_RETRY_MIN_MS);
      }
    } finally {
      await acknowledged;
    }
  }

  /** What nobody has acknowledged is never left out: what comes behind it is acknowledged with it. */
  async #findStart({ id, acknowledged }: ReceiverState): Promise<StartPosition> {
    const { since } = this.#options;
    const goingOn = { after: acknowledged, since: undefined };
    if (since === undefined) return goingOn;
    if (since === "all") return { after: "0", since: undefined };
    const reading = { ...goingOn, limit: 1, waitSeconds: 0 };
    const page = await this.#retryUntilAnswered((signal) =>
      this.#source.events(id, reading, signal),
    );
    const [oldest] = page.events;
    const isOlder = oldest !== undefined && Date.parse(oldest.receivedAt) < Date.parse(since);
    return isOlder ? goingOn : { after: "0", since };
  }

  #read(receiverId: string, start: StartPosition, signal: AbortSignal): Promise<DeliveryPage> {
    const reading = {
      ...start,
      limit: FORWARD_PAGE_ROWS,
      // Whoever was cut off wants to know that it is over, whether there is something new or not.
      waitSeconds: this.#isDisconnected ? 0 : FORWARD_WAIT_SECONDS,
    };
    return this.#source.events(receiverId, reading, signal);
  }

  /** Resolves when it was taken, or put aside. */
  async #deliver(delivery: Delivery): Promise<void> {
    const { id, receivedAt } = delivery;
    let seen = 0;
    for (let attempt = 1; ; attempt += 1) {
      if (this.#isStopped) throw new StoppedError();
      const result = await this.#target.post(delivery, this.#abortDelivery.signal);
      const isTaken = result.status !== null && result.status >= 200 && result.status < 300;
      if (!isTaken && this.#isStopped) throw new StoppedError();
      // Until something listens nothing is lost by waiting; a server that refuses may always do so.
      if (!result.isUnsent) seen += 1;
      const isOver = seen >= FORWARD_ATTEMPTS_MAX;
      const outcome = isTaken ? "delivered" : isOver ? "put_aside" : "retrying";
      this.emit("handled", { id, receivedAt, attempt, outcome, ...result });
      if (outcome !== "retrying") return;
      await this.#pause(Math.min(FORWARD_RETRY_MAX_MS, FORWARD_RETRY_MIN_MS * 2 ** (attempt - 1)));
    }
  }

  /** Asks until there is an answer. */
  async #retryUntilAnswered<Answer>(
    ask: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    for (let failures = 0; ; failures += 1) {
      if (this.#isStopped) throw new StoppedError();
      try {
        const answer = await ask(this.#stop.signal);
        if (this.#isDisconnected) this.emit("reconnected");
        this.#isDisconnected = false;
        return answer;
      } catch (error) {
        if (this.#isStopped) throw new StoppedError();
        if (!(error instanceof UnreachableError)) throw error;
        if (!this.#isDisconnected) this.emit("disconnected", error.message);
        this.#isDisconnected = true;
        await this.#pause(backOff(failures));
      }
    }
  }

  async #acknowledge(receiverId: string, cursor: string): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        await this.#source.acknowledge(receiverId, cursor, this.#abortDelivery.signal);
        return;
      } catch (error) {
        // Whoever reads on is refused for the same reason, and says so.
        if (error instanceof RejectionError || this.#isStopped) return;
        await delay(backOff(failures), undefined, { signal: this.#stop.signal }).catch(
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

/** Leads out of whatever is being done. */
class StoppedError extends Error {
  override name = "Stopped";
}
