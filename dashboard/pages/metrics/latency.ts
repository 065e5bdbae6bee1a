/** The steps of latencies that the API counts. */
import type { Breakdown } from "../../../protocol/schemas/metrics.ts";

type Steps = Breakdown["latency"];

/** From the first to the last step with a response. */
export function trimSteps(steps: Steps): Steps {
  const first = steps.findIndex(({ requests }) => requests > 0);
  const last = steps.findLastIndex(({ requests }) => requests > 0);
  return first === -1 ? [] : steps.slice(first, last + 1);
}

/**
 * @param ratio 0 to 1.
 * @returns the end of the step within which this part of the responses arrived; null: it is in the last step, without end.
 */
export function findPercentileMs(steps: Steps, ratio: number): number | null {
  const total = steps.reduce((sum, { requests }) => sum + requests, 0);
  let counted = 0;
  for (const { up_to_ms: bound, requests } of steps) {
    counted += requests;
    if (counted >= total * ratio) return bound;
  }
  return null;
}
