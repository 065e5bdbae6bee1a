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
// Times are counted in checks, because the clock may be set back.
/** The second check after a write comes when nothing was written for `PAUSE_MS` or longer. */
const CHECKS_AFTER_WRITE = 2;
/** When the front proxy is asked again, while nothing was written since. */
const CHECKS_BETWEEN_QUESTIONS = MINUTE_MS / PAUSE_MS;

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
  /** The check at which the front proxy is asked, unless a part of the response is written before. */
  askAt: number;
}

export class DepartedVisitors {
  readonly #frontProxy: Pick<Fetcher, "fetch">;
  readonly #watched = new Set<WatchEntry>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #isAsking = false;
  #checks = 0;

  constructor(frontProxy: Pick<Fetcher, "fetch">) {
    this.#frontProxy = frontProxy;
  }

  /**
   * @param key of the visitor's connection to the front proxy.
   * @param onDeparted called at most once: within two pauses when the visitor leaves as a pause begins, and within a minute when
   * the visitor leaves later.
   */
  watch(key: string, onDeparted: () => void): WatchedResponse {
    const watched = { key, onDeparted, askAt: this.#checks + CHECKS_AFTER_WRITE };
    this.#watched.add(watched);
    // A timer keeps the object awake, as each watched response does anyway.
    this.#timer ??= setInterval(() => void this.#check(), PAUSE_MS);
    return {
      recordWrite: () => void (watched.askAt = this.#checks + CHECKS_AFTER_WRITE),
      unwatch: () => void this.#watched.delete(watched),
    };
  }

  async #check(): Promise<void> {
    if (this.#watched.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    this.#checks += 1;
    const paused = [...this.#watched].filter(({ askAt }) => askAt <= this.#checks);
    if (this.#isAsking || paused.length === 0) return;
    this.#isAsking = true;
    for (const watched of paused) watched.askAt = this.#checks + CHECKS_BETWEEN_QUESTIONS;
    try {
      const departed = await this.#findDeparted(paused.map(({ key }) => key));
      for (const watched of paused)
        if (departed.has(watched.key) && this.#watched.delete(watched)) watched.onDeparted();
    } catch {
      // The front proxy is being restarted: it is asked again at the next check.
      for (const watched of paused) watched.askAt = this.#checks;
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
