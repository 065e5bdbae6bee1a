/**
 * The control connection between an agent and a relay: a WebSocket at `/agent` of the relay, with a ticket as
 * the bearer and `RELAY_SUBPROTOCOL` as its protocol. Text messages are the JSON objects below; binary
 * messages carry datagrams (datagrams.ts) and are only for networks. Refusals and ends are close codes
 * (protocol/wire/close-codes.ts). docs/protocols/relay-protocol.md describes the whole protocol.
 */
import { z } from "zod";
import { WireGuardKey } from "../schemas/networks.ts";
import { FLOWS_PER_PORT_MAX } from "./limits.ts";

/** A remote WireGuard peer as the relay sees it. */
const Flow = z.object({
  /** Random and never used again: an old id must not name a new peer. */
  id: z.int().min(0).max(0xffff_ffff),
  address: z.string(),
  port: z.int().min(0).max(65_535),
  /**
   * MAC of the relay over association, network, id, address and port, in base64: an agent can't invent destinations. Empty
   * until the peer's address is confirmed: the flow can't be restored.
   */
  tag: z.string(),
});
export type Flow = z.infer<typeof Flow>;

const NetworkWelcome = z.object({
  type: z.literal("welcome"),
  kind: z.literal("network"),
  /** Identifies this run of the relay. */
  epoch: z.string(),
  association: z.int().min(1).max(0xffff_ffff),
  /** The key of BIND and BOUND: 32 bytes in base64. */
  key: z.string(),
  /** The relay's port for BIND and DATA, on the host of the relay's URL, whose own port may be that of a proxy. */
  udpPort: z.int(),
  /** The address for remote peers: `host:port`. */
  publicEndpoint: z.string(),
});

const TunnelWelcome = z.object({
  type: z.literal("welcome"),
  kind: z.literal("tunnel"),
  epoch: z.string(),
  association: z.int().min(1).max(0xffff_ffff),
  /** The bearer of data connections: 32 random bytes in base64url. */
  streamKey: z.string(),
  /** How many data connections to keep ready. */
  pool: z.int().min(0),
  publicEndpoint: z.string(),
});

export const RelayToAgentMessage = z.union([
  NetworkWelcome,
  TunnelWelcome,
  /** A flow that the agent does not know yet: sent before its first datagram. For a known one: its next tag. */
  z.object({ type: z.literal("flow"), flow: Flow }),
  /** The relay forgot the flow. */
  z.object({ type: z.literal("flow_closed"), id: z.int() }),
  /** Visitors are waiting: open `count` data connections beyond the pool. */
  z.object({ type: z.literal("open"), count: z.int().min(1) }),
]);
export type RelayToAgentMessage = z.infer<typeof RelayToAgentMessage>;
export type NetworkWelcome = z.infer<typeof NetworkWelcome>;
export type TunnelWelcome = z.infer<typeof TunnelWelcome>;

export const AgentToRelayMessage = z.discriminatedUnion("type", [
  /** The next ticket, for the same port. */
  z.object({ type: z.literal("ticket"), ticket: z.string().max(8_192) }),
  /** After a welcome: flows of an earlier association that still have a local socket. */
  z.object({
    type: z.literal("resume"),
    association: z.int(),
    flows: z.array(Flow).max(FLOWS_PER_PORT_MAX),
  }),
  /** The public key of a flow's device, when the agent knows it. */
  z.object({ type: z.literal("device"), flow: z.int(), publicKey: WireGuardKey }),
  /** The agent's measurements, every `RELAY_STATUS_INTERVAL_MS` while they change. */
  z.object({
    type: z.literal("path"),
    transport: z.enum(["udp", "websocket"]),
    latencyMs: z.number().min(0).nullable(),
    /** The loss of the last minute's datagrams, 0 to 1; null without datagrams. */
    loss: z.number().min(0).max(1).nullable(),
    /** Whether a server listens on the port that the agent forwards to. */
    isLocalListening: z.boolean(),
  }),
]);
export type AgentToRelayMessage = z.infer<typeof AgentToRelayMessage>;

/**
 * The head that the relay writes on a data connection before a visitor's first byte: its length as a u16 (big-endian),
 * then this object as JSON.
 */
export const VisitorHead = z.object({
  /** The visitor's. */
  address: z.string(),
  port: z.int(),
  /** The address that the visitor connected to, for the PROXY protocol. */
  localAddress: z.string(),
  localPort: z.int(),
});
export type VisitorHead = z.infer<typeof VisitorHead>;
