/**
 * What the API says of an agent whose connection it hands to a tunnel. By then the token is verified and
 * the tunnel's row belongs to it; the object decides only who of several agents serves the name.
 */
import { z } from "zod";

/** Agents are handed over under this host, which no visitor's request can carry: the edge refuses it. */
export const AGENT_HOST = "agent.internal";
export const AGENT_CONNECT_URL = `https://${AGENT_HOST}/connect`;
export const ADMISSION_HEADER = "underpass-admission";

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
  /** For how long what is captured is kept, by the plan as it was at this version of the tunnel. */
  retention: z.object({ version: z.int(), days: z.int() }).optional(),
});
export type Admission = z.infer<typeof Admission>;

/** What outlives hibernation, in the attachment of the agent's socket. */
export interface AgentAttachment extends Admission {
  kind: "agent";
  agentId: string;
  connectedAtMs: number;
  /** Agents serve from their hello on; null until then. */
  hello: { agent: string; streamWindow: number; connectionWindow: number } | null;
}

/** The same for a visitor's WebSocket: which stream of which agent it is. */
export interface VisitorAttachment {
  kind: "visitor";
  agentId: string;
  stream: number;
  /** The id that its recording has; null: none is kept. */
  capture: string | null;
}

export type Attachment = AgentAttachment | VisitorAttachment;

export function attachmentOf(socket: WebSocket): Attachment {
  return socket.deserializeAttachment() as Attachment;
}
