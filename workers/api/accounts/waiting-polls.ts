/**
 * Long polls of machines that wait for a user's decision. They learn of a decision in the same isolate at once, and of
 * one in another isolate when they read the row again. Nothing is signaled between requests: the platform
 * does not let one request resume another.
 */
import { isDraining } from "../../draining.ts";
import { BoundedMap } from "../../../shared/bounds/bounded-map.ts";

const WAITING_POLLS_MAX = 256;
const WAITING_POLLS_PER_SOURCE_MAX = 16;
/** How often a waiting poll checks this isolate's memory, and the database. */
const POLL_MEMORY_MS = 200;
const POLL_ROW_MS = 5_000;
/** A poll that has not checked for this long was canceled: its machine has disconnected. */
const POLL_ABANDONED_MS = 2_000;
const DECIDED_MAX = 1_000;

/** By the id of the device request. */
const waiting = new Map<string, { source: string; seenAtMs: number }>();
const decided = new BoundedMap<string, true>(DECIDED_MAX);

export function announceDecision(deviceId: string): void {
  decided.set(deviceId, true);
}

/**
 * Reads the row when it may have changed, until it has changed or the poll has waited for `waitMs`.
 *
 * @param read returns undefined while the request still waits.
 * @returns "busy" at once when a poll of this machine waits already, or when too many polls wait.
 */
export async function waitForDecision<Result>(
  {
    deviceId,
    source,
    waitMs,
    signal,
  }: { deviceId: string; source: string; waitMs: number; signal: AbortSignal },
  read: () => Promise<Result | undefined>,
): Promise<Result | undefined | "busy"> {
  const startedAtMs = Date.now();
  let readAtMs = startedAtMs;
  if (!hasRoom(deviceId, source, startedAtMs)) return "busy";
  try {
    for (;;) {
      const nowMs = Date.now();
      // A machine that has disconnected must not collect the token: it can be collected only once.
      if (nowMs - startedAtMs >= waitMs || isDraining() || signal.aborted) return undefined;
      waiting.set(deviceId, { source, seenAtMs: nowMs });
      await new Promise((resolve) => setTimeout(resolve, POLL_MEMORY_MS));
      const isDue = decided.has(deviceId) || Date.now() - readAtMs >= POLL_ROW_MS;
      if (!isDue || signal.aborted) continue;
      readAtMs = Date.now();
      const result = await read();
      if (result !== undefined) return result;
    }
  } finally {
    waiting.delete(deviceId);
  }
}

function hasRoom(deviceId: string, source: string, nowMs: number): boolean {
  for (const [id, { seenAtMs }] of waiting) {
    if (nowMs - seenAtMs > POLL_ABANDONED_MS) waiting.delete(id);
  }
  const fromSource = [...waiting.values()].filter((poll) => poll.source === source).length;
  return (
    !waiting.has(deviceId) &&
    waiting.size < WAITING_POLLS_MAX &&
    fromSource < WAITING_POLLS_PER_SOURCE_MAX
  );
}
