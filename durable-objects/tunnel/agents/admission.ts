/**
 * What the API says of an agent whose connection it hands to a tunnel. By then the token is verified and
 * the tunnel's row belongs to it; the object decides only who of several agents serves the name.
 */
import { z } from "zod";

/** Agents are handed over under this host, which no visitor's request can carry: the edge refuses it. */
export const AGENT_HOST = "agent.internal";
export const AGENT_CONNECT_URL = `https://${AGENT_HOST}/connect`;
export const ADMISSION_HEADER = "underpass-admission";
/** The same for clients of `underpass connect`. */
export const AGENT_STREAMS_URL = `https://${AGENT_HOST}/streams`;
export const CLIENT_HEADER = "underpass-client";

export const Admission = z.object({
  tunnelId: z.uuid(),
  orgId: z.uuid(),
  /** What the agent asked for, or was given; a project's suffix makes it the subdomain. */
  name: z.string(),
  subdomain: z.string(),
  url: z.string(),
  tokenNonce: z.string(),
  tokenExpiresAtMs: z.number(),
  /** When the tunnel is over. null: never. */
  endsAtMs: z.number().nullable(),
  bandwidthLimitMbps: z.number(),
  remoteIp: z.string(),
  /** Of a tunnel of protocol `tcp`, and of no other: where its visitors connect to. */
  relay: z.object({ id: z.string(), port: z.int() }).optional(),
  /** For how long what is captured is kept, by the plan as it was at this version of the tunnel. */
  retention: z.object({ version: z.int(), days: z.int() }).optional(),
});
export type Admission = z.infer<typeof Admission>;

export const ClientAdmission = z.object({
  tunnelId: z.uuid(),
  /** Of the tunnel. */
  localPort: z.int().optional(),
  address: z.string(),
  tokenNonce: z.string(),
  tokenExpiresAtMs: z.number(),
});
export type ClientAdmission = z.infer<typeof ClientAdmission>;

/** What outlives hibernation, in the attachment of the agent's socket. */
export interface AgentAttachment extends Admission {
  kind: "agent";
  agentId: string;
  connectedAtMs: number;
  /** Agents serve from their hello on; null until then. */
  hello: {
    agent: string;
    streamWindow: number;
    connectionWindow: number;
    /** Whether it takes `connect` streams. */
    takesTcp?: boolean;
  } | null;
}

/** The same for a visitor's WebSocket: which stream of which agent it is. */
export interface VisitorAttachment {
  kind: "visitor";
  agentId: string;
  stream: number;
  /** The id that its recording has; null: none is kept. */
  capture: string | null;
}

/** The same for a client of `underpass connect`. */
export interface ClientAttachment extends ClientAdmission {
  kind: "client";
  arrivedAtMs: number;
  /** What the client may send beyond what was granted, in bytes: promised on its arrival. */
  window: number;
  /** null until the agent was sent the stream. */
  stream: SavedStream | null;
}

/** A stream between a client and an agent, as it is between two events: all of it in bytes. */
export interface SavedStream {
  agentId: string;
  /** Its number on the agent's connection. */
  id: number;
  /** Sent to the agent, which has yet to grant them. */
  toAgent: number;
  /** Gone on to the agent, and the client is yet to be granted them. */
  clientUngranted: number;
  /** Sent to the client, which has yet to grant them. */
  toClient: number;
  /** Granted by the client, and the agent is yet to be granted them. */
  agentUngranted: number;
  hasClientEnded: boolean;
  hasAgentEnded: boolean;
}

export type Attachment = AgentAttachment | VisitorAttachment | ClientAttachment;

export function attachmentOf(socket: WebSocket): Attachment {
  return socket.deserializeAttachment() as Attachment;
}
