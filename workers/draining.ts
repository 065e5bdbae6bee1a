/** Whether this server is about to stop: it then refuses new connections of watchers and relays. */
let hasStarted = false;

export function startDraining(): void {
  hasStarted = true;
}

export function isDraining(): boolean {
  return hasStarted;
}

/**
 * Organizations that a watcher has connected to through this isolate. A self-hosted server has one isolate for the API, and
 * must close those connections before it can stop; no row lists them.
 */
export const watchedOrganizations = new Set<string>();
