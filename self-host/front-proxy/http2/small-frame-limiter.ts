/**
 * Limits the small frames of one source. Each takes this process a microsecond or more, although it costs the visitor only ten
 * bytes, and HTTP/2 has no limit of them: a window counts their data.
 */
import { BoundedMap } from "../../../shared/bounds/bounded-map.ts";
import { takeFromBucket, type TokenBucket } from "../../../shared/bounds/token-bucket.ts";

/** Programs that send a body in small parts join what they have not sent yet. */
const FRAMES = { burst: 20_000, refillMs: 0.1 };
/** The source whose last small frame was the earliest is forgotten first. */
const SOURCES_MAX = 16_384;

export class SmallFrameLimiter {
  readonly #buckets = new BoundedMap<string, TokenBucket>(SOURCES_MAX);

  /** Counts frames. @returns false: the source has sent too many. */
  take(source: string, count: number, nowMs: number): boolean {
    const { bucket, waitMs } = takeFromBucket(this.#buckets.get(source), FRAMES, nowMs, count);
    this.#buckets.set(source, bucket);
    return waitMs === 0;
  }
}
