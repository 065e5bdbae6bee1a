/**
 * What a tunnel captures, told to its organization while somebody watches. A lone request is told at once,
 * many are gathered; while one call is on its way the next ones wait, so that there is never more than one.
 *
 * Every answer says whether somebody still watches: an end that was never told ends by itself.
 */
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import type { CaptureBatch, WatchStatus } from "../../rpc.ts";

/** A tunnel that has much to tell gathers it for this long. */
const FEED_GATHER_MS = 100;
/** Captures that a tunnel has yet to tell. Beyond it they are counted as missed. */
export const FEED_QUEUE_MAX_CAPTURES = 1_000;
/** When news that could not be told is told again, and how often. */
const FEED_RETRY_MS = 1_000;
export const FEED_MAX_ATTEMPTS = 5;

const KEY = "watch";

export interface FeedTarget {
  tunnelId: string;
  organization: { news(news: CaptureBatch): Promise<WatchStatus> };
}

export class CaptureFeed {
  readonly #kv: Pick<SyncKvStorage, "get" | "put">;
  readonly #findTarget: () => FeedTarget | undefined;
  #watchStatus: WatchStatus | undefined;
  #queue: CaptureSummary[] = [];
  #missed = 0;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isTelling = false;
  #sentAtMs = 0;

  /** @param home whose tunnel it is; undefined while nobody has said so. */
  constructor(kv: Pick<SyncKvStorage, "get" | "put">, home: () => FeedTarget | undefined) {
    this.#kv = kv;
    this.#findTarget = home;
    this.#watchStatus = kv.get<WatchStatus>(KEY);
  }

  /** Who was never told either way tells once, and hears it. */
  get isWatched(): boolean {
    return this.#watchStatus?.isWatched ?? true;
  }

  /** Of two words the later one holds, in whatever order they come. */
  setWatchStatus(watch: WatchStatus): void {
    if (this.#watchStatus && watch.version < this.#watchStatus.version) return;
    const isNew = watch.version !== this.#watchStatus?.version || watch.isWatched !== this.isWatched;
    this.#watchStatus = watch;
    if (isNew) this.#kv.put<WatchStatus>(KEY, watch);
    if (!watch.isWatched) this.#clear();
  }

  add(summary: CaptureSummary): void {
    if (!this.isWatched) return;
    if (this.#queue.length < FEED_QUEUE_MAX_CAPTURES) this.#queue.push(summary);
    else this.#missed += 1;
    this.#failures = 0;
    this.#scheduleSend();
  }

  #scheduleSend(): void {
    if (this.#timer !== undefined || this.#isTelling) return;
    if (this.#queue.length === 0 && this.#missed === 0) return;
    const isBusy = Date.now() - this.#sentAtMs < FEED_GATHER_MS;
    const waitMs = this.#failures > 0 ? FEED_RETRY_MS : isBusy ? FEED_GATHER_MS : 0;
    this.#timer = setTimeout(() => void this.#send(), waitMs);
  }

  async #send(): Promise<void> {
    this.#timer = undefined;
    const home = this.#findTarget();
    if (!home) return this.#clear();
    const news = {
      tunnelId: home.tunnelId,
      messages: this.#queue.map((summary) => JSON.stringify(summary)),
      missed: this.#missed,
    };
    this.#queue = [];
    this.#missed = 0;
    this.#isTelling = true;
    this.#sentAtMs = Date.now();
    try {
      this.setWatchStatus(await home.organization.news(news));
      this.#failures = 0;
    } catch {
      // They may have arrived; watchers are better told too many missed ones than none.
      this.#missed += news.missed + news.messages.length;
      this.#failures += 1;
      if (this.#failures >= FEED_MAX_ATTEMPTS) this.#clear();
    } finally {
      this.#isTelling = false;
      this.#scheduleSend();
    }
  }

  #clear(): void {
    this.#queue = [];
    this.#missed = 0;
    this.#failures = 0;
  }
}
