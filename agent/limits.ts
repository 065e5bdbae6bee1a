/** Limits that several files of the agent share. */

/** How long the agent waits for a connection to the local server. */
export const ORIGIN_CONNECT_MAX_MS = 10_000;

/** Connections to the local server at the same time. Further requests are refused. */
export const ORIGIN_CONNECTIONS_MAX = 1_024;

/** All header lines of a request or a response together: the limit of the Workers platform. */
export const ORIGIN_HEADERS_MAX_BYTES = 128 * 1024;
