/**
 * Early garbage collections on a self-hosted server. V8 counts only its own heap, so it lets thousands of dead requests
 * and responses gather, and workerd then destroys all of their native parts in one go: each request waits for 100 ms and
 * more. Collected often, few have died each time. The native parts of dead calls of the API are 10 KB each, so that strangers
 * who request unknown hosts could make them 100 MiB.
 *
 * The self-hosted server starts workerd with `--expose-gc`. Cloudflare has no `gc`, and collects by itself.
 */

/** V8's function: collects the garbage of the whole heap before it returns. */
type Collect = (options: { type: "major"; execution: "sync" }) => void;

/** With fewer, tracing what is alive takes too much CPU time. With more, the pauses are longer. */
export const REQUESTS_PER_COLLECTION = 150;
/** A request counts as much as a WebSocket's messages of this many bytes. */
const REQUEST_BYTES = 32 * 1024;
/** The bytes of messages between two collections when there are no requests. */
export const BYTES_PER_COLLECTION = REQUESTS_PER_COLLECTION * REQUEST_BYTES;
/** After this many, collections no longer wait for their share of the time: at 10 KB each, 3,000 requests leave 30 MB. */
export const MAX_WAITING_REQUESTS = 3_000;
const MAX_WAITING_BYTES = MAX_WAITING_REQUESTS * REQUEST_BYTES;

/** Collections take at most this share of the time: those of a large heap, which last longer, are rarer. */
const EDGE_MAX_TIME_SHARE = 1 / 20;
/** Less than 1 %, so that its slowest 1 % of requests are not those that wait for a collection. */
const API_MAX_TIME_SHARE = 1 / 120;

export class GarbageCollection {
  readonly #collect: Collect | undefined;
  readonly #maxTimeShare: number;
  readonly #now: () => number;
  /** Since the last collection, requests included. */
  #bytes = 0;
  #nextAtMs = 0;

  /** @param now in milliseconds. On workerd, the clock goes on while code runs; on Cloudflare it does not. */
  constructor(
    maxTimeShare: number,
    collect = (globalThis as { gc?: Collect }).gc,
    now: () => number = Date.now,
  ) {
    this.#maxTimeShare = maxTimeShare;
    this.#collect = collect;
    this.#now = now;
  }

  /** Called for each request to the isolate. */
  countRequest(): void {
    this.#add(REQUEST_BYTES);
  }

  /** Called for each message of a WebSocket that a tunnel's object receives. */
  countMessage(message: string | ArrayBuffer): void {
    this.#add(typeof message === "string" ? message.length : message.byteLength);
  }

  /** Called for each slice of a read of stored values. */
  countRead(bytes: number): void {
    this.#add(bytes);
  }

  #add(bytes: number): void {
    if (this.#collect === undefined) return;
    this.#bytes += bytes;
    if (this.#bytes < BYTES_PER_COLLECTION) return;
    const startedAtMs = this.#now();
    if (startedAtMs < this.#nextAtMs && this.#bytes < MAX_WAITING_BYTES) return;
    this.#bytes = 0;
    this.#collect({ type: "major", execution: "sync" });
    const endedAtMs = this.#now();
    this.#nextAtMs = startedAtMs + (endedAtMs - startedAtMs) / this.#maxTimeShare;
  }
}

/** The edge with the objects, and the API of a self-hosted server have an isolate each, with a heap of its own. */
export const edgeGarbageCollection = new GarbageCollection(EDGE_MAX_TIME_SHARE);
export const apiGarbageCollection = new GarbageCollection(API_MAX_TIME_SHARE);
