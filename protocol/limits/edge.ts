/** Bounds of what comes in at the API, taken or not, and of what it looks up for its callers. */

/** From a request's head to the end of its body. */
export const API_BODY_MAX_MS = 30_000;

/** A body that is refused is read to its end all the same, up to this: then the refusal is read too. */
export const UNREAD_BODY_MAX_BYTES = 8 * 1024 * 1024;
export const UNREAD_BODY_MAX_MS = 5_000;

/** Look-ups of TXT records for one organization, at once and then one each: as many claims as can wait, twice. */
export const TXT_LOOKUP_BURST = 200;
export const TXT_LOOKUP_REFILL_MS = 5_000;
