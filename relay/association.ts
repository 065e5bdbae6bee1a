/** An agent that serves one port: the interface that networks and tunnels have in common. */
import type { AgentToRelayMessage, RelayToAgentMessage } from "../protocol/relay/control.ts";
import type { NetworkStatus, AssociationUsage } from "../protocol/relay/link.ts";
import type { RelayTicket } from "../protocol/relay/ticket.ts";
import { getErrorCode } from "../shared/error-message.ts";
import type { NetworkRecord } from "./network-records.ts";

export type NetworkSummary = Omit<NetworkStatus, "devices">;

/** The messages that an association handles; tickets are handled by the control connection. */
export type AssociationMessage = Exclude<AgentToRelayMessage, { type: "ticket" }>;

/** The agent's control connection, as an association sees it. */
export interface AgentConnection {
  send(message: RelayToAgentMessage): void;
  /** Sends a binary WebSocket message. */
  sendBinary(message: Uint8Array): void;
  /** Bytes that are queued to be sent. */
  readonly bufferedBytes: number;
}

export interface Association {
  readonly id: number;
  readonly ticket: RelayTicket;
  readonly welcome: RelayToAgentMessage;
  /** Binds the port. @throws the system's error when that fails. */
  listen(): Promise<void>;
  handleMessage(message: AssociationMessage): void;
  /** @returns false for bytes that are not datagrams. */
  handleDatagrams(bytes: Buffer): boolean;
  /** A later ticket for the same port. */
  renew(ticket: RelayTicket): void;
  /** Called every second. @param nowMs milliseconds since the epoch. */
  sweep(nowMs: number): void;
  /** The agent disconnected: unbinds the port. Connections that do not need its control connection may continue. */
  release(): void;
  /** Unbinds the port and ends everything. */
  close(): void;
  /** Only for a tunnel. */
  getUsage?(): AssociationUsage;
  /** Only for a network: its current status, without its devices. */
  getNetworkStatus?(nowMs: number): NetworkSummary;
  /** Only for a network: its devices. */
  readonly record?: Pick<NetworkRecord, "takeChanges">;
}

/** Agents print it. It must fit into the reason of a close frame: 123 bytes (RFC 6455 §5.5). */
export function explainBindError(error: unknown, port: number): string {
  const isTaken = getErrorCode(error) === "EADDRINUSE";
  return isTaken
    ? `another program uses port ${port} of the relay now; if this lasts, ask the server's operator to free it`
    : `the relay can't listen on port ${port}; ask the server's operator for the reason in its log`;
}
