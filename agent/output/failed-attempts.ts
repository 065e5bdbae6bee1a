/** Which of many failed attempts to connect are worth a line of a log. */
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { HOUR_MS, MINUTE_MS } from "../../shared/time.ts";

/** How many attempts that fail for the same reason are printed before the first pause. */
const PRINTED_AT_ONCE = 2;
/** A reason can contain text of the server, which may differ each time. */
const REASONS_MAX = 20;

interface Repetition {
  failures: number;
  /** When the reason is printed again. */
  nextAtMs: number;
  pauseMs: number;
}

export class FailedAttempts {
  /** By reason: those of a host with several addresses alternate. */
  readonly #repetitions = new BoundedMap<string, Repetition>(REASONS_MAX);
  #count = 0;

  /** How many attempts have failed since the agent was connected. */
  get count(): number {
    return this.#count;
  }

  /** @returns whether to print it: the first two attempts that fail for a reason, then one after each pause of 1 min, 2 min, 4 min to an hour. */
  add(reason: string, nowMs = Date.now()): boolean {
    this.#count += 1;
    const repetition = this.#repetitions.get(reason) ?? {
      failures: 0,
      nextAtMs: 0,
      pauseMs: MINUTE_MS,
    };
    this.#repetitions.set(reason, repetition);
    repetition.failures += 1;
    const isRepeated = repetition.failures > PRINTED_AT_ONCE;
    if (isRepeated && nowMs < repetition.nextAtMs) return false;
    if (isRepeated) repetition.pauseMs = Math.min(2 * repetition.pauseMs, HOUR_MS);
    repetition.nextAtMs = nowMs + repetition.pauseMs;
    return true;
  }

  /** The agent is connected. */
  clear(): void {
    this.#repetitions.clear();
    this.#count = 0;
  }
}
