/** The log: one line of JSON for each event. Secrets and bodies are never logged. */
import { takeFromBucket, type TokenBucket } from "./bounds/token-bucket.ts";

type Level = "info" | "warn" | "error";

export function log(level: Level, event: string, details: Record<string, unknown> = {}): void {
  console[level](JSON.stringify({ level, event, ...details }));
}

/** For `LimitedLog`: 50 lines a second, and 200 at once. */
export const LOG_LIMIT = { burst: 200, refillMs: 20 };

/** An event that visitors can cause at any rate. The lines that it writes are limited, so that they fill no disk. */
export class LimitedLog {
  readonly #event: string;
  #bucket: TokenBucket | undefined;
  /** Events since the last line that were not logged. */
  #unlogged = 0;

  constructor(event: string) {
    this.#event = event;
  }

  /** Logs the event, or counts it in the field `unlogged` of the next line. @param nowMs since the epoch. */
  record(details: Record<string, unknown>, nowMs: number): void {
    const { bucket, waitMs } = takeFromBucket(this.#bucket, LOG_LIMIT, nowMs);
    this.#bucket = bucket;
    if (waitMs > 0) {
      this.#unlogged += 1;
      return;
    }
    log("info", this.#event, {
      ...details,
      ...(this.#unlogged > 0 && { unlogged: this.#unlogged }),
    });
    this.#unlogged = 0;
  }
}
