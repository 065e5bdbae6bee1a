/** The messages of a server for agents and clients that speak another version of the protocol. */
import type { CloseExplanation } from "./close-reason.ts";
import { PROTOCOL_VERSION } from "./frames.ts";

/**
 * @param version of the agent, from its hello.
 * @param subprotocol that this server accepts. It names the version.
 * @returns which side must be upgraded, short enough for the reason of a Close.
 */
export function explainVersionMismatch(version: number, subprotocol: string): CloseExplanation {
  if (version < PROTOCOL_VERSION) {
    const message = `the agent is too old: this server requires ${subprotocol}; upgrade the agent`;
    return { message, subcode: "agent_too_old" };
  }
  return {
    message: `the server is too old for this agent: it requires ${subprotocol}; upgrade the server`,
  };
}

/** The same for an agent, about the version in a server's welcome. */
export function explainServerVersion(version: number): CloseExplanation {
  if (version > PROTOCOL_VERSION) {
    const message = `the agent is too old for this server, which speaks version ${version} of the protocol; upgrade the agent`;
    return { message, subcode: "agent_too_old" };
  }
  return {
    message: `the server is too old for this agent: it speaks version ${version} of the protocol; upgrade the server`,
  };
}

/**
 * @param offered the subprotocols that an agent or client offers.
 * @param accepted the only one that this server accepts.
 * @returns the same for a connection that is refused before its hello.
 */
export function explainSubprotocolMismatch(
  offered: readonly string[],
  accepted: string,
): CloseExplanation {
  const name = accepted.replace(/\d+$/, "");
  const versions = offered
    .filter((protocol) => protocol.startsWith(name))
    .map((protocol) => Number(protocol.slice(name.length)))
    .filter((version) => Number.isInteger(version));
  if (versions.length === 0) return { message: `this server requires the subprotocol ${accepted}` };
  return explainVersionMismatch(Math.max(...versions), accepted);
}
