/** The hello of an agent or of a client, and the welcome that answers an agent's. */
import {
  CLOSE_CAPABILITY,
  FRAME,
  GATES_CAPABILITY,
  Hello,
  parseJsonPayload,
  POOL_CAPABILITY,
  PROTOCOL_VERSION,
  REQUEST_IDS_CAPABILITY,
  STATUS_CAPABILITY,
  TCP_CAPABILITY,
  type Welcome,
} from "../../../protocol/wire/frames.ts";
import { readFrames } from "../../../protocol/wire/read-frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import type { AccessStatus } from "../proxy/access-policy.ts";
import type { AgentAttachment } from "../socket-attachments.ts";

/** Parsing a larger one takes longer than a hello is worth: all others of the isolate wait meanwhile. */
const HELLO_MAX_BYTES = 16 * 1024;

/**
 * The first message of an agent or of a client.
 * @returns null unless it is a single frame, and a valid hello.
 */
export function parseHello(message: ArrayBuffer): Hello | null {
  if (message.byteLength > HELLO_MAX_BYTES) return null;
  let frames = 0;
  let hello: Hello | null = null;
  const isComplete = readFrames(new Uint8Array(message), ({ type, payload }) => {
    frames += 1;
    if (frames > 1 || type !== FRAME.hello) return;
    hello = Hello.safeParse(parseJsonPayload(payload)).data ?? null;
  });
  return isComplete && frames === 1 ? hello : null;
}

/** The part of a hello that the agent's socket keeps. */
export function toAttachedHello(
  { agent, capabilities, streamWindow, connectionWindow, local, pool }: Hello,
  { relay }: Pick<AgentAttachment, "relay">,
): NonNullable<AgentAttachment["hello"]> {
  return {
    agent,
    streamWindow,
    connectionWindow,
    ...(local !== undefined && { local }),
    takesTcp: capabilities.includes(TCP_CAPABILITY),
    answersClose: capabilities.includes(CLOSE_CAPABILITY),
    readsStatus: capabilities.includes(STATUS_CAPABILITY),
    readsRequestIds: capabilities.includes(REQUEST_IDS_CAPABILITY),
    // The visitors of a TCP tunnel reach its agent through the relay, which knows one agent for a port.
    ...(pool && relay === undefined && { pool }),
  };
}

/**
 * The expiry is that of the row when the agent was admitted: after an upgrade, the object still knows the earlier one.
 *
 * @param shards how many objects the tunnel has.
 */
export function buildWelcome(
  attachment: AgentAttachment,
  { gates, maintenance }: AccessStatus,
  shards: number,
): Welcome {
  return {
    protocol: PROTOCOL_VERSION,
    server: SERVICE_VERSION,
    capabilities:
      attachment.relay === undefined
        ? ["websocket", CLOSE_CAPABILITY, GATES_CAPABILITY, POOL_CAPABILITY]
        : [TCP_CAPABILITY],
    tunnelId: attachment.tunnelId,
    agentId: attachment.agentId,
    name: attachment.name,
    subdomain: attachment.subdomain,
    url: attachment.url,
    streamWindow: STREAM_WINDOW_BYTES,
    connectionWindow: CONNECTION_WINDOW_BYTES,
    heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS,
    heartbeatTimeoutMs: HEARTBEAT_TIMEOUT_MS,
    gates,
    ...(maintenance && { maintenance }),
    ...(shards > 1 && { shards }),
    ...(attachment.endsAtMs !== null && {
      expiresAt: new Date(attachment.endsAtMs).toISOString(),
    }),
    ...(attachment.ttlLimit !== undefined && { ttlLimit: attachment.ttlLimit }),
  };
}
