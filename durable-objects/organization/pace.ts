/**
 * How much a watcher may be sent. The platform queues what a slow reader does not take, without end, so what
 * is on the way is bounded here: by what the watcher says has arrived or, if it never says, by a rate.
 *
 * Everything that is offered is either sent or counted as missed, and what was missed is told before
 * anything else is sent.
 */

/** What all watchers of an organization may have on the way to them, together. */
export const WATCH_WINDOWS_BYTES = 32 * 1024 * 1024;
/** Of that, a watcher's part: sent, and not known to have arrived. */
const WATCH_WINDOW_MIN_BYTES = 32 * 1024;
export const WATCH_WINDOW_MAX_BYTES = 512 * 1024;
/** A watcher that never answers a sync gets this much at once, and so much a second. */
export const WATCH_UNANSWERED_BURST_BYTES = 256 * 1024;
export const WATCH_UNANSWERED_BYTES_PER_SECOND = 64 * 1024;
/**
 * All that it ever gets where the platform does not say how much of it is still queued: it might read nothing.
 * Then it is let go.
 */
export const WATCH_UNANSWERED_MAX_BYTES = 8 * 1024 * 1024;
/** Syncs that a watcher has yet to answer. */
const WATCH_SYNCS_MAX = 8;
/** Until a watcher has answered once, it is asked after so many messages. */
const WATCH_FIRST_SYNC_MESSAGES = 32;
/** A watcher that is behind for longer is let go. */
export const WATCH_BEHIND_MAX_MS = 30_000;

interface Sync {
  /** By chance: whoever knows it has read it, and what was sent before it. */
  n: number;
  sentBytes: number;
}

/** Kept through sleep, in the attachment of the watcher's socket. Bytes are those of messages, as text. */
export interface Pace {
  sentBytes: number;
  /** Of those, known to have arrived. */
  arrivedBytes: number;
  /** Syncs without an answer, the oldest first. */
  asked: Sync[];
  /** Up to where the newest sync asks. */
  askedBytes: number;
  messagesSinceAsked: number;
  /** It has answered a sync. */
  answers: boolean;
  /** Without an answer: what it may be sent now, as of then. */
  budgetBytes: number;
  budgetAtMs: number;
  /** Since when it is not sent anything; null: it is. */
  behindSinceMs: number | null;
  /** To be told. */
  missed: number;
}

export function newPace(nowMs: number): Pace {
  return {
    sentBytes: 0,
    arrivedBytes: 0,
    asked: [],
    askedBytes: 0,
    messagesSinceAsked: 0,
    answers: false,
    budgetBytes: WATCH_UNANSWERED_BURST_BYTES,
    budgetAtMs: nowMs,
    behindSinceMs: null,
    missed: 0,
  };
}

/** One watcher's part of what all may have on the way. */
export function windowBytes(watchers: number): number {
  const part = Math.floor(WATCH_WINDOWS_BYTES / Math.max(1, watchers));
  return Math.min(WATCH_WINDOW_MAX_BYTES, Math.max(WATCH_WINDOW_MIN_BYTES, part));
}

/** What bounds a watcher at this moment. */
export interface Bounds {
  nowMs: number;
  windowBytes: number;
  /** What the platform has queued for it, where the platform says so. */
  queuedBytes: number | undefined;
}

/** @returns how many are missed, to be told now; 0 while it is behind, or is not. */
export function catchUp(pace: Pace, bounds: Bounds): number {
  refill(pace, bounds.nowMs);
  if (pace.behindSinceMs === null || roomBytes(pace, bounds) < halfOf(pace, bounds)) return 0;
  const { missed } = pace;
  pace.behindSinceMs = null;
  pace.missed = 0;
  return missed;
}

/** @returns how many of the messages to send, from the first; the others are missed. */
export function offer(pace: Pace, sizes: number[], bounds: Bounds): number {
  refill(pace, bounds.nowMs);
  let taken = 0;
  let room = pace.behindSinceMs === null ? roomBytes(pace, bounds) : 0;
  for (const size of sizes) {
    // One that is larger than any room goes alone, or it would never.
    const goesAlone = taken === 0 && pace.arrivedBytes === pace.sentBytes && room > 0;
    if (size > room && !goesAlone) break;
    room -= size;
    taken += 1;
    pace.sentBytes += size;
    pace.messagesSinceAsked += 1;
    pace.budgetBytes -= size;
  }
  skip(pace, sizes.length - taken, bounds.nowMs);
  return taken;
}

/** What others have failed to tell is missed too. */
export function skip(pace: Pace, missed: number, nowMs: number): void {
  if (missed === 0) return;
  pace.missed += missed;
  pace.behindSinceMs ??= nowMs;
}

/** @returns what to ask in a sync that is due; null: none is. */
export function askDue(pace: Pace, { windowBytes }: Bounds): number | null {
  const unasked = pace.sentBytes - pace.askedBytes;
  const isDue = pace.answers
    ? unasked >= windowBytes / 4
    : pace.messagesSinceAsked >= WATCH_FIRST_SYNC_MESSAGES;
  if (!isDue || pace.asked.length >= WATCH_SYNCS_MAX) return null;
  const n = crypto.getRandomValues(new Uint32Array(1))[0]!;
  pace.asked.push({ n, sentBytes: pace.sentBytes });
  pace.askedBytes = pace.sentBytes;
  pace.messagesSinceAsked = 0;
  return n;
}

/** A sync came back. What was never asked is no answer. */
export function arrived(pace: Pace, n: number): void {
  const at = pace.asked.findIndex((sync) => sync.n === n);
  if (at === -1) return;
  pace.arrivedBytes = pace.asked[at]!.sentBytes;
  pace.asked.splice(0, at + 1);
  pace.answers = true;
}

/** Whether to let it go: it takes nothing, or nobody knows. One that only never answers is slow, not stuck. */
export function isStuck(pace: Pace, bounds: Bounds): boolean {
  const { nowMs, queuedBytes = 0, windowBytes } = bounds;
  if (pace.behindSinceMs === null) return false;
  // So little is left that it could never catch up.
  if (unansweredRoomBytes(pace, bounds) < halfOf(pace, bounds)) return true;
  if (nowMs - pace.behindSinceMs < WATCH_BEHIND_MAX_MS) return false;
  return pace.answers || queuedBytes > windowBytes;
}

function refill(pace: Pace, nowMs: number): void {
  const passedMs = Math.max(0, nowMs - pace.budgetAtMs);
  const grown = pace.budgetBytes + (passedMs * WATCH_UNANSWERED_BYTES_PER_SECOND) / 1000;
  pace.budgetBytes = Math.min(WATCH_UNANSWERED_BURST_BYTES, grown);
  pace.budgetAtMs = nowMs;
}

function roomBytes(pace: Pace, bounds: Bounds): number {
  const { windowBytes, queuedBytes = 0 } = bounds;
  const granted = pace.answers
    ? windowBytes - (pace.sentBytes - pace.arrivedBytes)
    : Math.min(pace.budgetBytes, unansweredRoomBytes(pace, bounds));
  return Math.min(granted, windowBytes - queuedBytes);
}

/** What one that has never answered may still be sent, ever. */
function unansweredRoomBytes({ answers, sentBytes }: Pace, { queuedBytes }: Bounds): number {
  const isKnownToRead = answers || queuedBytes !== undefined;
  return isKnownToRead ? Infinity : WATCH_UNANSWERED_MAX_BYTES - sentBytes;
}

/** So much room ends being behind: not for every single message anew. */
function halfOf({ answers }: Pace, { windowBytes }: Bounds): number {
  const whole = answers ? windowBytes : WATCH_UNANSWERED_BURST_BYTES / 4;
  return Math.min(whole, windowBytes) / 2;
}
