/** Bounds that several files of self-host/ share, each with its unit in its name. */

export const CHILD_STOP_MAX_MS = 10_000;
export const CHILD_RESTART_MIN_MS = 200;
export const CHILD_RESTART_MAX_MS = 5_000;
