/** The log: one line of JSON for each event. Secrets and bodies are never logged. */
import { takeFromBucket, type TokenBucket } from "./bounds/token-bucket.ts";

type Level = "info" | "warn" | "error";

export function log(level: Level, event: string, details: Record<string, unknown> = {}): void {
  console[level](JSON.stringify({ level, event, ...details }));
}

/** Lines that one cause may write: 50 a second, and 200 at once. */
export const LOG_LIMIT = { burst: 200, refillMs: 20 };

/** Limits the lines that others can cause at any rate, so that they fill no disk. */
export class LogLimiter {
  #bucket: TokenBucket | undefined;
  #unlogged = 0;

  /**
   * @param nowMs since the epoch.
   * @returns null when the line is not to be logged; otherwise how many were not logged since the last one.
   */
  admit(nowMs: number): number | null {
    const { bucket, waitMs } = takeFromBucket(this.#bucket, LOG_LIMIT, nowMs);
    this.#bucket = bucket;
    if (waitMs > 0) {
      this.#unlogged += 1;
      return null;
    }
    const unlogged = this.#unlogged;
    this.#unlogged = 0;
    return unlogged;
  }
}

/** An event that others can cause at any rate. */
export class LimitedLog {
  readonly #level: Level;
  readonly #event: string;
  readonly #limiter = new LogLimiter();

  constructor(level: Level, event: string) {
    this.#level = level;
    this.#event = event;
  }

  /** Logs the event, or counts it in the field `unlogged` of the next line. @param nowMs since the epoch. */
  record(details: Record<string, unknown>, nowMs: number): void {
    const unlogged = this.#limiter.admit(nowMs);
    if (unlogged === null) return;
    log(this.#level, this.#event, { ...details, ...(unlogged > 0 && { unlogged }) });
  }
}
