/**
 * Pseudorandom choices that are the same in every run, so that a failure can be reproduced. They are for load, races and
 * simulations, which draw numbers while they run, and for large messages that do not compress. A property that is tested
 * with many inputs uses fast-check, which prints the smallest input that fails.
 */
export interface Random {
  /** A whole number from 0 to `below` - 1. */
  below(below: number): number;
  pick<Item>(items: readonly Item[]): Item;
  bytes(length: number): Uint8Array<ArrayBuffer>;
}

/** The generator is mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed;
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }
  return {
    below: (below) => next() % Math.floor(below),
    pick: (items) => items[next() % items.length]!,
    bytes(length) {
      const bytes = new Uint8Array(length);
      // `Uint8Array.from` takes five times as long, in which an agent of the same process can miss its heartbeats.
      for (let at = 0; at < length; at += 1) bytes[at] = next() & 0xff;
      return bytes;
    },
  };
}
