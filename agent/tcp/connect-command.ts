/** The command with which a machine of the organization reaches a TCP tunnel without its public port. */
export function formatConnectCommand(tunnelName: string): string {
  return `underpass connect ${tunnelName}`;
}
