/** Bounds that several files of agent/ share, each with its unit in its name. */

export const ORIGIN_CONNECT_MAX_MS = 10_000;
