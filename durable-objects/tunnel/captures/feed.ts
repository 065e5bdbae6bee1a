/**
 * What a tunnel captures, told to its organization while somebody watches. A lone request is told at once,
 * many are gathered; while one call is on its way the next ones wait, so that there is never more than one.
 *
 * Every answer says whether somebody still watches: an end that was never told ends by itself.
 */
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import type { CaptureNews, Watch } from "../../rpc.ts";

/** A tunnel that has much to tell gathers it for this long. */
const NEWS_GATHER_MS = 100;
/** Captures that a tunnel has yet to tell. Beyond it they are counted as missed. */
export const NEWS_WAITING_MAX_CAPTURES = 1_000;
/** When news that could not be told is told again, and how often. */
const NEWS_RETRY_MS = 1_000;
export const NEWS_MAX_TRIES = 5;

const KEY = "watch";

export interface Home {
  tunnelId: string;
  organization: { news(news: CaptureNews): Promise<Watch> };
}

export class CaptureFeed {
  readonly #kv: Pick<SyncKvStorage, "get" | "put">;
  readonly #home: () => Home | undefined;
  #watch: Watch | undefined;
  #waiting: CaptureSummary[] = [];
  #missed = 0;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isTelling = false;
  #toldAtMs = 0;

  /** @param home whose tunnel it is; undefined while nobody has said so. */
  constructor(kv: Pick<SyncKvStorage, "get" | "put">, home: () => Home | undefined) {
    this.#kv = kv;
    this.#home = home;
    this.#watch = kv.get<Watch>(KEY);
  }

  /** Who was never told either way tells once, and hears it. */
  get isWatched(): boolean {
    return this.#watch?.isWatched ?? true;
  }

  /** Of two words the later one holds, in whatever order they come. */
  setWatch(watch: Watch): void {
    if (this.#watch && watch.version < this.#watch.version) return;
    const isNew = watch.version !== this.#watch?.version || watch.isWatched !== this.isWatched;
    this.#watch = watch;
    if (isNew) this.#kv.put<Watch>(KEY, watch);
    if (!watch.isWatched) this.#forget();
  }

  captured(summary: CaptureSummary): void {
    if (!this.isWatched) return;
    if (this.#waiting.length < NEWS_WAITING_MAX_CAPTURES) this.#waiting.push(summary);
    else this.#missed += 1;
    this.#failures = 0;
    this.#tellSoon();
  }

  #tellSoon(): void {
    if (this.#timer !== undefined || this.#isTelling) return;
    if (this.#waiting.length === 0 && this.#missed === 0) return;
    const isBusy = Date.now() - this.#toldAtMs < NEWS_GATHER_MS;
    const waitMs = this.#failures > 0 ? NEWS_RETRY_MS : isBusy ? NEWS_GATHER_MS : 0;
    this.#timer = setTimeout(() => void this.#tell(), waitMs);
  }

  async #tell(): Promise<void> {
    this.#timer = undefined;
    const home = this.#home();
    if (!home) return this.#forget();
    const news = {
      tunnelId: home.tunnelId,
      messages: this.#waiting.map((summary) => JSON.stringify(summary)),
      missed: this.#missed,
    };
    this.#waiting = [];
    this.#missed = 0;
    this.#isTelling = true;
    this.#toldAtMs = Date.now();
    try {
      this.setWatch(await home.organization.news(news));
      this.#failures = 0;
    } catch {
      // They may have arrived; watchers are better told too many missed ones than none.
      this.#missed += news.missed + news.messages.length;
      this.#failures += 1;
      if (this.#failures >= NEWS_MAX_TRIES) this.#forget();
    } finally {
      this.#isTelling = false;
      this.#tellSoon();
    }
  }

  #forget(): void {
    this.#waiting = [];
    this.#missed = 0;
    this.#failures = 0;
  }
}
