/**
 * Finds visitors who have left while their response paused. workerd reports that a visitor has left, except while a write to
 * that visitor is in progress (in workerd's code, the request then fails instead of being canceled, and only canceled requests
 * abort their signal). So once after each pause begins, the front proxy is asked whether the visitor is still connected.
 */
import {
  DEPARTED_PATH,
  formatKeys,
  parseKeys,
} from "../../../protocol/front-proxy/connection-key.ts";

/** How long nothing must have been written before the front proxy is asked, and how often that is checked. */
const PAUSE_MS = 5_000;

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
  writtenAtMs: number;
  /** Whether the visitor was connected in this pause: leaving later is reported. */
  isChecked: boolean;
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
   * @param onDeparted called at most once, at most two pauses after the visitor has left.
   */
  watch(key: string, onDeparted: () => void): WatchedResponse {
    const watched = { key, onDeparted, writtenAtMs: Date.now(), isChecked: false };
    this.#watched.add(watched);
    this.#start();
    return {
      recordWrite: () => {
        watched.writtenAtMs = Date.now();
        watched.isChecked = false;
        this.#start();
      },
      unwatch: () => void this.#watched.delete(watched),
    };
  }

  /** A timer keeps the object awake, so it runs only while something is left to check. */
  #start(): void {
    this.#timer ??= setInterval(() => void this.#check(), PAUSE_MS);
  }

  async #check(): Promise<void> {
    if (this.#isAsking) return;
    const unchecked = [...this.#watched].filter(({ isChecked }) => !isChecked);
    if (unchecked.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const pausedSinceMs = Date.now() - PAUSE_MS;
    const paused = unchecked.filter(({ writtenAtMs }) => writtenAtMs <= pausedSinceMs);
    if (paused.length === 0) return;
    this.#isAsking = true;
    for (const watched of paused) watched.isChecked = true;
    try {
      const departed = await this.#findDeparted(paused.map(({ key }) => key));
      for (const watched of paused)
        if (departed.has(watched.key) && this.#watched.delete(watched)) watched.onDeparted();
    } catch {
      // The front proxy is being restarted: it is asked again.
      for (const watched of paused) watched.isChecked = false;
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
