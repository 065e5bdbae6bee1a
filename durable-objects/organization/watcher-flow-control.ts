/**
 * How much a watcher may be sent. The platform queues without limit what a slow reader does not read, so the
 * bytes in flight are bounded here: by what the watcher has acknowledged or, if it never acknowledges, by a rate.
 *
 * Every offered message is either sent or counted as missed, and the number of missed messages is sent before
 * anything else.
 */

/** Bytes in flight to all watchers of an organization together. */
export const WATCH_WINDOWS_BYTES = 32 * 1024 * 1024;
/** One watcher's share of that: sent, but not yet acknowledged. */
const WATCH_WINDOW_MIN_BYTES = 32 * 1024;
export const WATCH_WINDOW_MAX_BYTES = 512 * 1024;
/** A watcher that never acknowledges a sync is sent this burst, and then this rate. */
export const WATCH_UNACKNOWLEDGED_BURST_BYTES = 256 * 1024;
export const WATCH_UNACKNOWLEDGED_BYTES_PER_SECOND = 64 * 1024;
/**
 * All that such a watcher is ever sent where the platform does not report how much is still queued for it, since
 * it might read nothing. After that it is disconnected.
 */
export const WATCH_UNACKNOWLEDGED_MAX_BYTES = 8 * 1024 * 1024;
/** Syncs that may be unacknowledged at a time. */
const WATCH_SYNCS_MAX = 8;
/** Until the first acknowledgement, a sync is sent after this many messages. */
const WATCH_FIRST_SYNC_MESSAGES = 32;
/** A watcher that is behind for longer is disconnected. */
export const WATCH_BEHIND_MAX_MS = 30_000;

interface Sync {
  /** Random, so that only a watcher that has read the sync, and all that was sent before it, can answer it. */
  n: number;
  /** Bytes sent before the sync. */
  sentBytes: number;
}

/** Survives hibernation in the attachment of the watcher's socket. Bytes are counted as characters of messages. */
export interface WatcherFlowState {
  sentBytes: number;
  acknowledgedBytes: number;
  /** Unacknowledged syncs, the oldest first. */
  pendingSyncs: Sync[];
  /** Bytes sent before the newest sync. */
  syncedBytes: number;
  messagesSinceSync: number;
  /** Whether any sync has been acknowledged. */
  hasAcknowledged: boolean;
  /** Until the first acknowledgement: what may be sent, as of `budgetAtMs`. */
  budgetBytes: number;
  budgetAtMs: number;
  /** While the watcher is behind it is sent nothing. null: it is not behind. */
  behindSinceMs: number | null;
  /** Missed messages that have not been reported to the watcher. */
  missed: number;
}

/** The state of a watcher that has just connected. */
export function createFlowState(nowMs: number): WatcherFlowState {
  return {
    sentBytes: 0,
    acknowledgedBytes: 0,
    pendingSyncs: [],
    syncedBytes: 0,
    messagesSinceSync: 0,
    hasAcknowledged: false,
    budgetBytes: WATCH_UNACKNOWLEDGED_BURST_BYTES,
    budgetAtMs: nowMs,
    behindSinceMs: null,
    missed: 0,
  };
}

/** One watcher's share of the bytes in flight. */
export function getWindowBytes(watchers: number): number {
  const share = Math.floor(WATCH_WINDOWS_BYTES / Math.max(1, watchers));
  return Math.min(WATCH_WINDOW_MAX_BYTES, Math.max(WATCH_WINDOW_MIN_BYTES, share));
}

/** The limits that apply to a watcher now. */
export interface FlowLimits {
  nowMs: number;
  windowBytes: number;
  /** Bytes that the platform has queued for the watcher, where it reports them. */
  queuedBytes: number | undefined;
}

/**
 * Ends being behind if there is room again.
 * @returns how many missed messages to report now; 0 while the watcher is behind, or if it is not.
 */
export function takeMissedCount(state: WatcherFlowState, limits: FlowLimits): number {
  refill(state, limits.nowMs);
  if (state.behindSinceMs === null) return 0;
  if (getAvailableBytes(state, limits) < getResumeThreshold(state, limits)) return 0;
  const { missed } = state;
  state.behindSinceMs = null;
  state.missed = 0;
  return missed;
}

/**
 * @param messagesMax how many may be sent, whatever their size.
 * @returns how many of the messages to send, counted from the first. The others are missed.
 */
export function admitMessages(
  state: WatcherFlowState,
  sizes: number[],
  limits: FlowLimits,
  messagesMax = Infinity,
): number {
  refill(state, limits.nowMs);
  let admitted = 0;
  let availableBytes = state.behindSinceMs === null ? getAvailableBytes(state, limits) : 0;
  for (const size of sizes) {
    // A message that is larger than the window is sent alone; otherwise it would never be sent.
    const isSentAlone =
      admitted === 0 && state.acknowledgedBytes === state.sentBytes && availableBytes > 0;
    if ((size > availableBytes && !isSentAlone) || admitted === messagesMax) break;
    availableBytes -= size;
    admitted += 1;
    state.sentBytes += size;
    state.messagesSinceSync += 1;
    state.budgetBytes -= size;
  }
  addMissed(state, sizes.length - admitted, limits.nowMs);
  return admitted;
}

/** Counts messages that the watcher will not receive, including those that its tunnel could not deliver. */
export function addMissed(state: WatcherFlowState, missed: number, nowMs: number): void {
  if (missed === 0) return;
  state.missed += missed;
  state.behindSinceMs ??= nowMs;
}

/** @returns the number of a sync to send now; null when none is due. */
export function takeDueSync(state: WatcherFlowState, { windowBytes }: FlowLimits): number | null {
  const unsyncedBytes = state.sentBytes - state.syncedBytes;
  const isDue = state.hasAcknowledged
    ? unsyncedBytes >= windowBytes / 4
    : state.messagesSinceSync >= WATCH_FIRST_SYNC_MESSAGES;
  if (!isDue || state.pendingSyncs.length >= WATCH_SYNCS_MAX) return null;
  const n = crypto.getRandomValues(new Uint32Array(1))[0]!;
  state.pendingSyncs.push({ n, sentBytes: state.sentBytes });
  state.syncedBytes = state.sentBytes;
  state.messagesSinceSync = 0;
  return n;
}

/** A number that was never sent is ignored. */
export function acknowledge(state: WatcherFlowState, n: number): void {
  const index = state.pendingSyncs.findIndex((sync) => sync.n === n);
  if (index === -1) return;
  state.acknowledgedBytes = state.pendingSyncs[index]!.sentBytes;
  state.pendingSyncs.splice(0, index + 1);
  state.hasAcknowledged = true;
}

/**
 * Whether to disconnect the watcher: it reads nothing, or might read nothing. A watcher that reads but never
 * acknowledges is slow, not stuck.
 */
export function isStuck(state: WatcherFlowState, limits: FlowLimits): boolean {
  const { nowMs, queuedBytes = 0, windowBytes } = limits;
  if (state.behindSinceMs === null) return false;
  // The rest of its allowance is too small for it ever to catch up.
  if (getUnacknowledgedAllowance(state, limits) < getResumeThreshold(state, limits)) return true;
  if (nowMs - state.behindSinceMs < WATCH_BEHIND_MAX_MS) return false;
  return state.hasAcknowledged || queuedBytes > windowBytes;
}

function refill(state: WatcherFlowState, nowMs: number): void {
  const elapsedMs = Math.max(0, nowMs - state.budgetAtMs);
  const refilled = state.budgetBytes + (elapsedMs * WATCH_UNACKNOWLEDGED_BYTES_PER_SECOND) / 1000;
  state.budgetBytes = Math.min(WATCH_UNACKNOWLEDGED_BURST_BYTES, refilled);
  state.budgetAtMs = nowMs;
}

function getAvailableBytes(state: WatcherFlowState, limits: FlowLimits): number {
  const { windowBytes, queuedBytes = 0 } = limits;
  const granted = state.hasAcknowledged
    ? windowBytes - (state.sentBytes - state.acknowledgedBytes)
    : Math.min(state.budgetBytes, getUnacknowledgedAllowance(state, limits));
  return Math.min(granted, windowBytes - queuedBytes);
}

/** What may still be sent in total to a watcher that has never acknowledged a sync. */
function getUnacknowledgedAllowance(
  { hasAcknowledged, sentBytes }: WatcherFlowState,
  { queuedBytes }: FlowLimits,
): number {
  const isKnownToRead = hasAcknowledged || queuedBytes !== undefined;
  return isKnownToRead ? Infinity : WATCH_UNACKNOWLEDGED_MAX_BYTES - sentBytes;
}

/** A watcher stays behind until this much is available, so that it does not resume for each single message. */
function getResumeThreshold(
  { hasAcknowledged }: WatcherFlowState,
  { windowBytes }: FlowLimits,
): number {
  const fullBytes = hasAcknowledged ? windowBytes : WATCH_UNACKNOWLEDGED_BURST_BYTES / 4;
  return Math.min(fullBytes, windowBytes) / 2;
}
