/**
 * Organizations that somebody began to watch in this process. A self-hosted server is one process, and has
 * to end those connections before it can stop; no row knows of them.
 */
export const organizationsWatchedHere = new Set<string>();
