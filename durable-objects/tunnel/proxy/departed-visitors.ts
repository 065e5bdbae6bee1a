/**
 * Finds visitors who have left while their response paused. workerd reports that a visitor has left, except while a write to
 * that visitor is in progress (in workerd's code, the request then fails instead of being canceled, and only canceled requests
 * abort their signal). So the front proxy is asked whether the visitor is still connected: soon after a pause begins, and once a
 * minute while it lasts.
 */
import {
  DEPARTED_PATH,
  formatKeys,
  parseKeys,
} from "../../../protocol/front-proxy/connection-key.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** How long nothing must have been written before the front proxy is asked, and how often that is checked. */
const PAUSE_MS = 5_000;
/** When it is asked again, while nothing was written since. */
const ASK_AGAIN_MS = MINUTE_MS;

/** A response that streams to a visitor. */
export interface WatchedResponse {
  /** A part of it was written: a new pause may begin. */
  recordWrite(): void;
  /** It has ended. Further calls change nothing. */
  unwatch(): void;
}

interface WatchEntry {
  key: string;
  onDeparted: () => void;
  /** When to ask the front proxy, unless a part of the response is written before. */
  askAtMs: number;
}

export class DepartedVisitors {
  readonly #frontProxy: Pick<Fetcher, "fetch">;
  readonly #watched = new Set<WatchEntry>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #isAsking = false;

  constructor(frontProxy: Pick<Fetcher, "fetch">) {
    this.#frontProxy = frontProxy;
  }

  /**
   * @param key of the visitor's connection to the front proxy.
   * @param onDeparted called at most once: within two pauses when the visitor leaves as a pause begins, and within a minute when
   * the visitor leaves later.
   */
  watch(key: string, onDeparted: () => void): WatchedResponse {
    const watched = { key, onDeparted, askAtMs: Date.now() + PAUSE_MS };
    this.#watched.add(watched);
    // A timer keeps the object awake, as each watched response does anyway.
    this.#timer ??= setInterval(() => void this.#check(), PAUSE_MS);
    return {
      recordWrite: () => void (watched.askAtMs = Date.now() + PAUSE_MS),
      unwatch: () => void this.#watched.delete(watched),
    };
  }

  async #check(): Promise<void> {
    if (this.#watched.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const nowMs = Date.now();
    const paused = [...this.#watched].filter(({ askAtMs }) => askAtMs <= nowMs);
    if (this.#isAsking || paused.length === 0) return;
    this.#isAsking = true;
    for (const watched of paused) watched.askAtMs = nowMs + ASK_AGAIN_MS;
    try {
      const departed = await this.#findDeparted(paused.map(({ key }) => key));
      for (const watched of paused)
        if (departed.has(watched.key) && this.#watched.delete(watched)) watched.onDeparted();
    } catch {
      // The front proxy is being restarted: it is asked again at the next check.
      for (const watched of paused) watched.askAtMs = nowMs;
    } finally {
      this.#isAsking = false;
    }
  }

  async #findDeparted(keys: string[]): Promise<Set<string>> {
    const response = await this.#frontProxy.fetch(`http://front-proxy${DEPARTED_PATH}`, {
      method: "POST",
      body: formatKeys(keys),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`the front proxy answered ${response.status}`);
    return new Set(parseKeys(text));
  }
}
