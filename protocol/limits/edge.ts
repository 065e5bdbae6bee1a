/** Bounds of what comes in at the API and is not taken. */

/** A body that is refused is read to its end all the same, up to this: then the refusal is read too. */
export const UNREAD_BODY_MAX_BYTES = 8 * 1024 * 1024;
export const UNREAD_BODY_MAX_MS = 5_000;
