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
export const REQUESTS_PER_COLLECTION = 300;

/** Collections take at most this share of the time: those of a large heap, which last longer, are rarer. */
const MAX_TIME_SHARE = 1 / 20;

export class GarbageCollection {
  readonly #collect: Collect | undefined;
  readonly #now: () => number;
  #requests = 0;
  #nextAtMs = 0;

  /** @param now in milliseconds. On workerd, the clock goes on while code runs; on Cloudflare it does not. */
  constructor(collect = (globalThis as { gc?: Collect }).gc, now: () => number = Date.now) {
    this.#collect = collect;
    this.#now = now;
  }

  /** Called for each request to the isolate. */
  countRequest(): void {
    if (this.#collect === undefined) return;
    this.#requests += 1;
    if (this.#requests < REQUESTS_PER_COLLECTION) return;
    const startedAtMs = this.#now();
    if (startedAtMs < this.#nextAtMs) return;
    this.#requests = 0;
    this.#collect({ type: "major", execution: "sync" });
    const endedAtMs = this.#now();
    this.#nextAtMs = startedAtMs + (endedAtMs - startedAtMs) / MAX_TIME_SHARE;
  }
}

/** That of this isolate, to whose heap it belongs: the edge and the API of a self-hosted server each have one. */
export const garbageCollection = new GarbageCollection();
