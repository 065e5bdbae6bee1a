/** Bounds of what has to do with paying. */

/** One call to the payment provider, which is tried again as often as `PAYMENTS_CALL_RETRIES` says. */
export const PAYMENTS_CALL_MAX_MS = 8_000;
export const PAYMENTS_CALL_RETRIES = 2;
export const PAYMENTS_ANSWER_MAX_BYTES = 1024 * 1024;
/** How old a signature may be. */
export const PAYMENTS_SIGNATURE_MAX_SECONDS = 300;
/** How far the provider's clock may be from ours: what it tells is dated by its own, to the second. */
export const PAYMENTS_CLOCK_SKEW_MS = 5 * 60_000;
/** How often the provider is asked because of one event, while others of the same subscription come. */
export const PAYMENTS_ASKS_MAX = 3;
/** Whoever asks for the same checkout again within this is led to the same one. */
export const CHECKOUT_REPEAT_MS = 60_000;

/** How often, and how many times, the page of the account looks whether what was just paid for is there. */
export const PAID_LOOK_INTERVAL_MS = 2_000;
export const PAID_LOOKS_MAX = 60;

/** From the first payment that failed; until then the plan stays. */
export const PAYMENT_GRACE_MS = 7 * 24 * 3600_000;
/** How many subscriptions whose grace is over one run of the scheduled job takes at once. */
export const LAPSED_BATCH_ROWS = 100;
/** The provider repeats an event for days; by then it is remembered that it was heard. */
export const BILLING_EVENT_KEEP_MS = 90 * 24 * 3600_000;

/** Links of the rehearsal (`BILLING_MODE=mock`). */
export const MOCK_LINK_MAX_MS = 3600_000;
