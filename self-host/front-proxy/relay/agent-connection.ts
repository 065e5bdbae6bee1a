/**
 * Connections of agents to the local relay. The front proxy passes on the two upgrades that agents ask the relay for, and
 * nothing else of the relay; once the relay has accepted one, it joins both connections and reads no more.
 */
import type { Socket } from "node:net";
import { DATA_CONNECTION_KEEP_ALIVE_MS } from "../../../protocol/relay/limits.ts";
import { CONTROL_PATH, DATA_PATH, RELAY_PATH } from "../../../protocol/relay/paths.ts";
import { Splice } from "../../../sockets/splice.ts";
import type { RequestHead } from "../http1/request-head.ts";

const PATHS = new Set([RELAY_PATH + CONTROL_PATH, RELAY_PATH + DATA_PATH]);
const WEBSOCKET_FIELD = /\r\nupgrade:[\t ]*websocket/i;

/** Whether a request to a host of the API is that of an agent for the relay. */
export function isForRelay({ isUpgrade, target }: RequestHead): boolean {
  return isUpgrade && PATHS.has(target.split("?", 1)[0]!);
}

interface AcceptedAgent {
  agent: Socket;
  relay: Socket;
  /** The head of the relay's response. */
  head: string;
  /** The response, and what the relay has sent after it. */
  bytes: Uint8Array;
  /** What the agent has sent after its request. */
  unread: Uint8Array | undefined;
  /** The relay has ended the WebSocket of a control connection. */
  onWebSocketEnd: () => void;
}

/** The bytes pass in both directions as fast as both ends read, and each direction ends on its own, as in TCP. */
export function joinRelay(accepted: AcceptedAgent): void {
  const { agent, relay, head, bytes, unread, onWebSocketEnd } = accepted;
  // Without TLS it has this option already.
  agent.allowHalfOpen = true;
  agent.setKeepAlive(true, DATA_CONNECTION_KEEP_ALIVE_MS);
  agent.pause();
  relay.pause();
  // The buffer is read into again.
  agent.write(Buffer.from(bytes));
  new Splice(agent, relay, { ...(unread && { unreadFromFirst: unread }), onClose() {} });
  // A WebSocket ends as a whole (RFC 6455 §7.1.1): an agent that stays connected is not waited for.
  if (WEBSOCKET_FIELD.test(head)) relay.once("end", onWebSocketEnd);
}
