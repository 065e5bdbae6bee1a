/** Calls back regularly to end what takes too long. */

const DEADLINE_INTERVAL_MS = 1_000;

/**
 * After this process was stopped or had no CPU time, the bytes that have arrived meanwhile are read first: their senders were not
 * late. Node.js runs timers before it reads, and immediates after it.
 */
export function startDeadlineTimer(
  checkDeadlines: () => void,
  intervalMs = DEADLINE_INTERVAL_MS,
): NodeJS.Timeout {
  return setInterval(() => setImmediate(checkDeadlines), intervalMs);
}
