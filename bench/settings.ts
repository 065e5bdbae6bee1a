/** Settings that several benchmarks share. */

/** Options of `npm run bench`. */
export interface BenchOptions {
  /** How long each measurement lasts. */
  seconds: number;
  /** Used by the benchmarks `many` and `connections`. */
  tunnels: number;
}

/** Seconds of load before the measurement starts. */
export const WARM_UP_SECONDS = 1;
/** How often each variant is measured, in turns, so that other work on the machine affects all of them alike. */
export const ROUNDS = 3;
/** Concurrent connections of the load generator, unless the benchmark varies them. */
export const CONNECTIONS = 32;
/** A rate for tokens that never limits a benchmark. */
export const UNLIMITED_MBPS = 100_000;
/** Size of the chunks in which large bodies are sent. */
export const CHUNK_BYTES = 256 * 1024;
