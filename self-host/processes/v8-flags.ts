/** Flags that keep the memory of processes small: ARCHITECTURE.md, "How memory stays bounded". */

/** A small young generation gives short pauses and low memory use at the same throughput. */
export const SMALL_YOUNG_GENERATION = ["--max-semi-space-size=1", "--min-semi-space-size=1"];

/**
 * The first collection of the old generation comes after some megabytes instead of some tens: memory that the process has
 * once used for garbage stays with it.
 */
export const EARLY_COLLECTION = ["--initial-old-space-size=4"];

/** workerd's. The Worker collects garbage itself, before much has gathered (`shared/garbage-collection.ts`). */
export const WORKERD_V8_FLAGS = [...SMALL_YOUNG_GENERATION, "--expose-gc"];
