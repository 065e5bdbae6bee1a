/** Whether this server is about to stop: it then refuses new connections of watchers and relays. */
let hasStarted = false;

export function startDraining(): void {
  hasStarted = true;
}

export function isDraining(): boolean {
  return hasStarted;
}
