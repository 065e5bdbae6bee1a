/** Commands of the agent for private networks. */
import { getAgentProgram, getSetupCommands } from "../../ui/text/agent-command.ts";
import { quoteForShell } from "../../ui/text/shell.ts";

/** The agent stores its login for each user. The next command runs as root, so root has to log in. */
export function getSetupCommandsOfRoot(): string[] {
  return getSetupCommands().map((command) => `sudo ${command}`);
}

/**
 * The command that makes a machine the server of the network, and then carries the network's traffic.
 * @param cidr the addresses of a network that does not exist yet, which the command creates too.
 */
export function formatServeCommand(name: string, cidr?: string): string {
  const create = cidr === undefined ? "" : ` --cidr ${cidr}`;
  return `sudo ${getAgentProgram()} vpn ${quoteForShell(name)} --setup${create} --apply`;
}

/** The command that adds a device named `phone`. */
export function formatAddDeviceCommand(name: string): string {
  return `${getAgentProgram()} vpn ${quoteForShell(name)} add phone`;
}
