/** Commands of the agent, to paste into a terminal. */
import { formatInstallCommand } from "../../../protocol/version.ts";

const THIS_MACHINE = ["localhost", "127.0.0.1", "[::1]"];

/** Whether the server runs on the machine of the user, who has started it in a checkout. */
export function isServerLocal(): boolean {
  return THIS_MACHINE.includes(location.hostname);
}

/** The agent. In a checkout, npx runs the agent of the checkout. */
export function getAgentProgram(): string {
  return isServerLocal() ? "npx underpass" : "underpass";
}

/** A command of the agent, with this server. */
export function formatAgentCommand(args: string): string {
  return `${getAgentProgram()} ${args} --server ${location.origin}`;
}

/** The commands on a machine that has no agent yet, which then can open tunnels. */
export function getSetupCommands(): string[] {
  const login = formatAgentCommand("login");
  return isServerLocal() ? [login] : [formatInstallCommand(location.origin), login];
}
