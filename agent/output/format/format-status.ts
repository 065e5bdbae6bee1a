/** @param status of a response; 0: the request ended before the local server answered. */
export function formatStatus(status: number): string {
  return status === 0 ? "---" : String(status);
}
