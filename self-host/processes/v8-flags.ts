/** A small young generation gives short pauses and low memory use at the same throughput. */
export const SMALL_YOUNG_GENERATION = ["--max-semi-space-size=1", "--min-semi-space-size=1"];

/** workerd's. The edge collects garbage itself, before much has gathered (`workers/edge/garbage-collection.ts`). */
export const WORKERD_V8_FLAGS = [...SMALL_YOUNG_GENERATION, "--expose-gc"];
