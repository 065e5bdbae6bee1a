/**
 * What the sockets of a tunnel's object carry through hibernation, in their attachments: whose they are, and the state of
 * their streams.
 */
import type { Hello } from "../../protocol/wire/frames.ts";
import type { AgentAdmission, ClientAdmission } from "./admission.ts";

/** The attachment of an agent's socket. */
export interface AgentAttachment extends AgentAdmission {
  kind: "agent";
  agentId: string;
  connectedAtMs: number;
  /** null until the agent's hello, from which on it serves. */
  hello: {
    agent: string;
    streamWindow: number;
    connectionWindow: number;
    /** Its local server, for people. */
    local?: string;
    /** Whether it accepts `connect` streams. */
    takesTcp?: boolean;
    /** Whether it answers a WebSocket's `close` with that of the local server. */
    answersClose?: boolean;
    /** Whether it reads `status` frames. */
    readsStatus?: boolean;
    /** Whether it reads the ids of requests. */
    readsRequestIds?: boolean;
    /** Set when the agent serves together with others; its health is that of its latest frame. */
    pool?: NonNullable<Hello["pool"]>;
  } | null;
}

/** The attachment of a visitor's WebSocket: its agent and stream. */
export interface VisitorAttachment {
  kind: "visitor";
  agentId: string;
  stream: number;
  /** The visitor's address group, which counts its WebSockets. */
  source: string;
  /** The key of the front proxy's acknowledgements; null where no front proxy acknowledges. */
  acknowledgementKey: string | null;
  /** The id of its recording; null: not recorded. */
  capture: string | null;
}

/** The attachment of the socket of a client of `underpass connect`. */
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

type Attachment = AgentAttachment | VisitorAttachment | ClientAttachment;

export function readAttachment(socket: WebSocket): Attachment {
  return socket.deserializeAttachment() as Attachment;
}
