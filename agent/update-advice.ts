/** What to do when the server is newer than this agent. */
import { formatInstallCommand } from "../protocol/version.ts";

/** @param server its origin; undefined when the message does not know it. */
export function formatUpdateAdvice(server?: string): string {
  return `Update the agent: ${formatUpdateCommand(server)}`;
}

/** The same, without the words. */
export function formatUpdateCommand(server = "https://SERVER"): string {
  return formatInstallCommand(server);
}

export function describeUnreadableMessage(server: URL): string {
  return `the server sent a message that this version can't read; update the agent: ${formatUpdateCommand(server.origin)}`;
}

/** For an answer of the API that a server of another version, older or newer, has sent. */
export function describeUnreadableAnswer(server: URL): string {
  return `the server has another version, whose answer this agent can't read; upgrade the older of the two, or install the server's own agent: ${formatUpdateCommand(server.origin)}`;
}
