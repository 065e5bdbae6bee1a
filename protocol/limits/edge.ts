/** Bounds of what comes in at the API and is not taken, and of what it looks up for its callers. */

/** A body that is refused is read to its end all the same, up to this: then the refusal is read too. */
export const UNREAD_BODY_MAX_BYTES = 8 * 1024 * 1024;
export const UNREAD_BODY_MAX_MS = 5_000;

/** Look-ups of TXT records for one organization, at once and then one each: as many claims as can wait, twice. */
export const TXT_LOOKUP_BURST = 200;
export const TXT_LOOKUP_REFILL_MS = 5_000;
