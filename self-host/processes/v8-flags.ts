/** A small young generation gives short pauses and low memory use at the same throughput. */
export const SMALL_YOUNG_GENERATION = ["--max-semi-space-size=1", "--min-semi-space-size=1"];
