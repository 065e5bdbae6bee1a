/** Bounds the JSON messages of agents, by port: what an agent does not use remains after it reconnects. */
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { takeFromBucket, type TokenBucket } from "../../shared/bounds/token-bucket.ts";

/** Five resumes of 4,096 flows (at most 475 KB each), and the devices of all their flows (1.4 MB with their overhead). */
const BURST_BYTES = 4 * 1024 * 1024;
/** A resume of 4,096 flows in 15 s. */
const BYTES_PER_SECOND = 32 * 1024;
/** What a message counts besides its bytes. */
const MESSAGE_OVERHEAD_BYTES = 256;
const RATE = { burst: BURST_BYTES, refillMs: 1_000 / BYTES_PER_SECOND };

export class MessageBudget {
  readonly #buckets: BoundedMap<string, TokenBucket>;

  /** @param portsMax ports whose messages are counted. Beyond it, the budget of the earliest one is full again. */
  constructor(portsMax: number) {
    this.#buckets = new BoundedMap(portsMax);
  }

  /** @param bytes of a message. @returns whether it may be read. */
  take(port: string, bytes: number): boolean {
    const cost = bytes + MESSAGE_OVERHEAD_BYTES;
    const { bucket, waitMs } = takeFromBucket(
      this.#buckets.get(port),
      RATE,
      performance.now(),
      cost,
    );
    this.#buckets.set(port, bucket);
    return waitMs === 0;
  }
}
