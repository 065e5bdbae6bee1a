/** Repeats calls of the API until it answers: this machine may start before its own network is up. */
import { setTimeout as delay } from "node:timers/promises";
import { getBackOffMs } from "../back-off.ts";
import { explainError } from "../error-message.ts";
import { RetryableError } from "../service-api.ts";

/**
 * @param attempt can be repeated.
 * @param onRetry called with the reason of a failed attempt, and the milliseconds until the next one.
 */
export async function retryWhileUnreachable<Result>(
  attempt: () => Promise<Result>,
  onRetry: (reason: string, inMs: number) => void,
  signal: AbortSignal,
  wait: (ms: number) => Promise<unknown> = (ms) => delay(ms, undefined, { signal }),
): Promise<Result> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof RetryableError) || signal.aborted) throw error;
      const inMs = getBackOffMs(failures);
      onRetry(explainError(error), inMs);
      await wait(inMs);
    }
  }
}
