/** Commands for the machine that serves a network. */
import { quoteForShell } from "../../ui/text/shell.ts";

/** Root has a login of its own. */
export const LOGIN_COMMAND = `sudo underpass login --server ${location.origin}`;

/** Makes a machine the server of the network, and carries its traffic. @param cidr creates the network too. */
export function formatServeCommand(name: string, cidr?: string): string {
  const create = cidr === undefined ? "" : ` --cidr ${cidr}`;
  return `sudo underpass vpn ${quoteForShell(name)} --setup${create} --apply`;
}

export function formatAddCommand(name: string): string {
  return `underpass vpn ${quoteForShell(name)} add phone`;
}
