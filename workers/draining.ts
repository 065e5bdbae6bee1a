/** Whether this server is about to stop: whoever waits for something is answered, and nobody waits anew. */
let draining = false;

export function startDraining(): void {
  draining = true;
}

export function isDraining(): boolean {
  return draining;
}
