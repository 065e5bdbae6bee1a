/**
 * What the API passes along with a connection that it hands over to a tunnel's object. The API has verified the
 * token and the ownership of the tunnel; the object only decides which of several agents serves.
 */
import { z } from "zod";
import type { Hello } from "../../../protocol/wire/frames.ts";

/** The host of hand-over requests. The edge refuses it in visitors' requests. */
export const INTERNAL_HOST = "agent.internal";
export const AGENT_CONNECT_URL = `https://${INTERNAL_HOST}/connect`;
export const ADMISSION_HEADER = "underpass-admission";
/** For clients of `underpass connect`. */
export const CLIENT_CONNECT_URL = `https://${INTERNAL_HOST}/streams`;
export const CLIENT_HEADER = "underpass-client";

export const AgentAdmission = z.object({
  tunnelId: z.uuid(),
  orgId: z.uuid(),
  /** The name that the agent requested or was assigned; with the project's suffix it is the subdomain. */
  name: z.string(),
  subdomain: z.string(),
  url: z.string(),
  tokenNonce: z.string(),
  tokenExpiresAtMs: z.number(),
  /** When the tunnel expires. null: never. */
  endsAtMs: z.number().nullable(),
  bandwidthLimitMbps: z.number(),
  remoteIp: z.string(),
  /** Only for tunnels of protocol `tcp`: the relay's port that visitors connect to. */
  relay: z.object({ id: z.string(), port: z.int() }).optional(),
  /** The number of the tunnel's object that the agent connects to. Absent: 0, the first one. */
  shard: z.int().min(1).optional(),
  /** How long the plan stores captures, as of this version of the tunnel. */
  retention: z.object({ version: z.int(), days: z.int() }).optional(),
});
export type AgentAdmission = z.infer<typeof AgentAdmission>;

export const ClientAdmission = z.object({
  tunnelId: z.uuid(),
  /** The tunnel's local port. */
  localPort: z.int().optional(),
  address: z.string(),
  tokenNonce: z.string(),
  tokenExpiresAtMs: z.number(),
});
export type ClientAdmission = z.infer<typeof ClientAdmission>;

/** The state of an agent's socket that survives hibernation. */
export interface AgentAttachment extends AgentAdmission {
  kind: "agent";
  agentId: string;
  connectedAtMs: number;
  /** null until the agent's hello, from which on it serves. */
  hello: {
    agent: string;
    streamWindow: number;
    connectionWindow: number;
    /** Whether it accepts `connect` streams. */
    takesTcp?: boolean;
    /** Whether it answers a WebSocket's `close` with that of the local server. */
    answersClose?: boolean;
    /** Whether it reads `status` frames. */
    readsStatus?: boolean;
    /** Whether it reads the ids of requests. */
    readsRequestIds?: boolean;
    /** Of an agent that serves together with others: its health as of its latest frame. */
    pool?: NonNullable<Hello["pool"]>;
  } | null;
}

/** The same for a visitor's WebSocket: its agent and stream. */
export interface VisitorAttachment {
  kind: "visitor";
  agentId: string;
  stream: number;
  /** The visitor's address group, which counts its WebSockets. */
  source: string;
  /** Of the front proxy's acknowledgements; null where there is none. */
  acknowledgementKey: string | null;
  /** The id of its recording; null: not recorded. */
  capture: string | null;
}

/** The same for a client of `underpass connect`. */
export interface ClientAttachment extends ClientAdmission {
  kind: "client";
  arrivedAtMs: number;
  /** How many bytes the client may send beyond its credit: fixed when it connects. */
  window: number;
  /** null until the stream is opened at the agent. */
  stream: SavedStream | null;
}

/** The state of a stream between a client and an agent, between two events. All numbers count bytes. */
export interface SavedStream {
  agentId: string;
  /** The stream's number on the agent's connection. */
  id: number;
  /** Sent to the agent, and not yet granted by it. */
  toAgent: number;
  /** Forwarded to the agent, and not yet granted to the client. */
  clientUngranted: number;
  /** Sent to the client, and not yet granted by it. */
  toClient: number;
  /** Granted by the client, and not yet granted to the agent. */
  agentUngranted: number;
  hasClientEnded: boolean;
  hasAgentEnded: boolean;
}

export type Attachment = AgentAttachment | VisitorAttachment | ClientAttachment;

export function readAttachment(socket: WebSocket): Attachment {
  return socket.deserializeAttachment() as Attachment;
}
