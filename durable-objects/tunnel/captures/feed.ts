/**
 * Sends the requests that a tunnel captures to its organization while a watcher is connected. A single request is
 * sent at once, many are gathered. While one call is in progress the next requests wait, so that there is never
 * more than one call.
 *
 * Every response says whether the tunnel is still watched, so a lost notification that the last watcher has
 * disconnected does no harm.
 */
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import type { CaptureBatch, WatchStatus } from "../../rpc.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** A tunnel with many requests gathers them for this long. */
const FEED_GATHER_MS = 100;
/** Captures that wait to be sent. Further ones are counted as missed. */
export const FEED_QUEUE_MAX_CAPTURES = 1_000;
/** When a failed call is retried, and how often. */
const FEED_RETRY_MS = 1_000;
export const FEED_MAX_ATTEMPTS = 5;

/**
 * How long a tunnel without an agent relies on the answer that it is not watched. The organization notifies such a tunnel of
 * new watchers for an hour after that answer.
 */
export const FEED_UNWATCHED_MS = 30 * MINUTE_MS;

const KEY = "watch";

interface FeedTarget {
  tunnelId: string;
  organization: { deliverCaptures(batch: CaptureBatch): Promise<WatchStatus> };
}

interface FeedSource {
  /** Whether an agent serves the tunnel: then the organization notifies it whenever a watcher connects. */
  readonly hasAgent: boolean;
  /** @returns undefined when the tunnel does not exist. */
  findOwner(): Promise<FeedTarget | undefined>;
}

export class CaptureFeed {
  readonly #kv: Pick<SyncKvStorage, "get" | "put">;
  readonly #tunnel: FeedSource;
  #watchStatus: WatchStatus | undefined;
  /** When this instance received the status; a stored one may be outdated. */
  #statusAtMs = -Infinity;
  #queue: CaptureSummary[] = [];
  #missed = 0;
  #failures = 0;
  #phase: "idle" | "scheduled" | "sending" = "idle";
  #sentAtMs = 0;

  constructor(kv: Pick<SyncKvStorage, "get" | "put">, tunnel: FeedSource) {
    this.#kv = kv;
    this.#tunnel = tunnel;
    this.#watchStatus = kv.get<WatchStatus>(KEY);
  }

  /** A tunnel that has no status yet assumes that it is watched, and learns it from the response. */
  get isWatched(): boolean {
    if (this.#watchStatus?.isWatched ?? true) return true;
    return !this.#tunnel.hasAgent && Date.now() - this.#statusAtMs > FEED_UNWATCHED_MS;
  }

  /** The status with the higher version wins, in whatever order they arrive. */
  setWatchStatus(status: WatchStatus): void {
    const current = this.#watchStatus;
    if (current && status.version < current.version) return;
    const isNew = status.version !== current?.version || status.isWatched !== current.isWatched;
    this.#watchStatus = status;
    this.#statusAtMs = Date.now();
    if (isNew) this.#kv.put<WatchStatus>(KEY, status);
    if (!status.isWatched) this.#clear();
  }

  add(summary: CaptureSummary): void {
    if (!this.isWatched) return;
    if (this.#queue.length < FEED_QUEUE_MAX_CAPTURES) this.#queue.push(summary);
    else this.#missed += 1;
    this.#failures = 0;
    if (this.#phase === "idle") this.#scheduleSend();
  }

  #scheduleSend(): void {
    this.#phase = "idle";
    if (this.#queue.length === 0 && this.#missed === 0) return;
    const isBusy = Date.now() - this.#sentAtMs < FEED_GATHER_MS;
    const waitMs = this.#failures > 0 ? FEED_RETRY_MS : isBusy ? FEED_GATHER_MS : 0;
    this.#phase = "scheduled";
    setTimeout(() => void this.#send(), waitMs);
  }

  async #send(): Promise<void> {
    const messages = this.#queue.map((summary) => JSON.stringify(summary));
    const batch = { messages, missed: this.#missed };
    this.#queue = [];
    this.#missed = 0;
    this.#phase = "sending";
    this.#sentAtMs = Date.now();
    try {
      const owner = await this.#tunnel.findOwner();
      if (!owner) return this.#clear();
      const { tunnelId, organization } = owner;
      this.setWatchStatus(await organization.deliverCaptures({ tunnelId, ...batch }));
      this.#failures = 0;
    } catch {
      // They may have arrived. Reporting too many missed requests to watchers is better than reporting none.
      this.#missed += batch.missed + batch.messages.length;
      this.#failures += 1;
      if (this.#failures >= FEED_MAX_ATTEMPTS) this.#clear();
    } finally {
      this.#scheduleSend();
    }
  }

  #clear(): void {
    this.#queue = [];
    this.#missed = 0;
    this.#failures = 0;
  }
}
