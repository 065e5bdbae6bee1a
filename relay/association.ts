/** An agent that serves one port: what networks and tunnels have in common. */
import type { AgentToRelayMessage, RelayToAgentMessage } from "../protocol/relay/control.ts";
import type { NetworkStatus, TunnelUsage } from "../protocol/relay/link.ts";
import type { RelayTicket } from "../protocol/relay/ticket.ts";

/** The messages that an association gets; tickets are looked at before. */
export type AssociationMessage = Exclude<AgentToRelayMessage, { type: "ticket" }>;

/** The agent's control connection, as an association sees it. */
export interface AgentConnection {
  send(message: RelayToAgentMessage): void;
  /** Binary WebSocket messages. */
  sendBinary(bytes: Uint8Array): void;
  /** Bytes that wait to be sent. */
  readonly bufferedAmount: number;
}

export interface Association {
  readonly number: number;
  readonly ticket: RelayTicket;
  readonly welcome: RelayToAgentMessage;
  /** Binds the port. @throws the system's error when that fails. */
  listen(): Promise<void>;
  handleMessage(message: AssociationMessage): void;
  /** @returns false for bytes that are no datagrams. */
  handleDatagrams(bytes: Buffer): boolean;
  /** A later ticket for the same port. */
  renew(ticket: RelayTicket): void;
  /** Called each second. @param now milliseconds since the epoch. */
  sweep(now: number): void;
  /** The agent is gone: gives the port up. Connections that need no agent's control connection may go on. */
  release(): void;
  /** Gives the port up and ends everything. */
  close(): void;
  /** Of a tunnel. */
  usage?(): TunnelUsage;
  /** Of a network, now. */
  networkStatus?(now: number): NetworkStatus;
}
