/** Limits that several files of the agent share. */

/** How long the agent waits for a connection to the local server. */
export const ORIGIN_CONNECT_MAX_MS = 10_000;
