/** How long the agent waits before it connects again, in milliseconds. */
import { RECONNECT_MAX_MS } from "../protocol/limits.ts";
import { CLOSE } from "../protocol/wire/close-codes.ts";

/** The shortest wait after a connection was lost or could not be opened. */
export const RECONNECT_MIN_MS = 500;
/** How often the agent of a stopped tunnel checks whether it was started again. */
export const STOPPED_RETRY_MIN_MS = 4_000;
export const STOPPED_RETRY_MAX_MS = 6_000;
/** When an agent reconnects after a member of the organization ended its connection. */
export const ENDED_RETRY_MIN_MS = 4_500;
export const ENDED_RETRY_MAX_MS = 5_500;

/**
 * The wait doubles from 0.5 to 5 seconds, with jitter, so that a thousand agents do not reconnect at once.
 * @param failures how many attempts in a row have failed before.
 */
export function getBackOffMs(failures: number, random: () => number = Math.random): number {
  const ceiling = Math.min(RECONNECT_MAX_MS, RECONNECT_MIN_MS * 2 ** Math.min(failures + 1, 10));
  return RECONNECT_MIN_MS + random() * (ceiling - RECONNECT_MIN_MS);
}

/**
 * While the server's address refuses connections, an attempt costs almost nothing, and a server that restarts will listen
 * again within seconds. So the delay stays below 2 seconds.
 */
export function getRefusedDelayMs(failures: number): number {
  return getBackOffMs(Math.min(failures, 1));
}

/** The wait after a connection was closed with `code`. */
export function getRetryDelayMs(code: number, failures: number): number {
  switch (code) {
    case CLOSE.connection_ended:
      // The member who ended the connection must see for some seconds that it is gone.
      return randomBetween(ENDED_RETRY_MIN_MS, ENDED_RETRY_MAX_MS);
    case CLOSE.tunnel_stopped:
      return randomBetween(STOPPED_RETRY_MIN_MS, STOPPED_RETRY_MAX_MS);
    default:
      return getBackOffMs(failures);
  }
}

function randomBetween(min: number, max: number): number {
  return min + Math.random() * (max - min);
}
