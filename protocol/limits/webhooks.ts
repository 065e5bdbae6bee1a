/** The bounds of webhook receivers. */

// ── What comes in ──

/** Deliveries of one receiver: so many at once, and then one more each `DELIVERY_REFILL_MS`. */
export const DELIVERY_BURST = 1_200;
export const DELIVERY_REFILL_MS = 50;
/** How far a vendor's clock may be from ours, either way, where the signature holds a time. */
export const SIGNATURE_TOLERANCE_SECONDS = 5 * 60;
/** Of one scheme, in one header line. */
export const SIGNATURES_MAX = 10;
/** What is longer is no delivery id: the delivery gets one of ours. */
export const DELIVERY_ID_MAX_CHARS = 200;
/** Receivers whose settings an isolate remembers. */
export const RECEIVERS_CACHE_MAX = 1_000;

// ── What is kept ──

/** Bodies and header lines of one receiver. What was acknowledged makes room; nothing else does. */
export const RECEIVER_KEPT_MAX_BYTES = 512 * 1024 * 1024;
/** When to come back to a receiver that is full. */
export const RECEIVER_FULL_RETRY_MS = 60_000;
/** How often what is too old is looked for, at the most. */
export const RECEIVER_SWEEP_MIN_MS = 60_000;
export const RECEIVER_SWEEP_BATCH_ROWS = 1_000;

// ── What is read ──

export const DELIVERIES_PAGE_DEFAULT_ROWS = 100;
export const DELIVERIES_PAGE_MAX_ROWS = 1_000;
/** Bodies and header lines in one answer; a delivery that is larger comes alone. */
export const DELIVERIES_PAGE_MAX_BYTES = 4 * 1024 * 1024;
export const LONG_POLL_MAX_SECONDS = 30;
/** Readers that wait for one receiver; beyond them the one that waits longest is answered. */
export const LONG_POLLS_MAX = 100;
/** How soon a waiting reader notices that the server stops, or that its client is gone. */
export const LONG_POLL_CHECK_MS = 250;

// ── Receivers ──

export const RECEIVERS_MAX = 100;
export const RECEIVER_NAME_MAX_CHARS = 100;
export const WEBHOOK_SECRET_MAX_CHARS = 1_000;
export const SECRET_OVERLAP_DEFAULT_HOURS = 24;
export const SECRET_OVERLAP_MAX_HOURS = 7 * 24;

// ── The agent that delivers them to a local server ──

export const FORWARD_PAGE_ROWS = 50;
export const FORWARD_WAIT_SECONDS = 25;
export const FORWARD_ATTEMPT_MAX_MS = 30_000;
/** How often a local server that answers, and not with 2xx, is asked about one delivery. */
export const FORWARD_ATTEMPTS_MAX = 5;
export const FORWARD_RETRY_MIN_MS = 500;
export const FORWARD_RETRY_MAX_MS = 30_000;
/** How long the delivery in progress gets when the agent is stopped. */
export const FORWARD_STOP_MAX_MS = 5_000;
