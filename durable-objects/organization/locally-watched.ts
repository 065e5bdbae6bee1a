/**
 * Organizations that a watcher of this process has connected to. A self-hosted server is a single process and
 * must close those connections before it can stop; no row lists them.
 */
export const locallyWatchedOrganizations = new Set<string>();
