/** Runs many calls, a few at a time. */

/** Calls that run at the same time. */
export const CONCURRENCY = 20;

export async function runConcurrently(
  count: number,
  run: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      while (next < count) await run(next++);
    }),
  );
}
