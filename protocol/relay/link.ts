/**
 * The link between a relay and the API: a WebSocket at `/relays/connect?relay_id=…` of the API, opened by the
 * relay with `RELAY_SECRET` as the bearer. Messages are the JSON objects below. The API sends its own messages (such as
 * revocations) over the same connection, so that the relay needs no open port for them.
 */
import { z } from "zod";
import { Label } from "../schemas/scalars.ts";

/** Texts that the platform answers without waking the object: see frames.ts. */
export { PING as RELAY_PING, PONG as RELAY_PONG } from "../wire/frames.ts";

/** The query of `/relays/connect`: the hello that follows must have the same id. */
export const RelayConnectQuery = z.object({ relay_id: Label });

export const RelayHello = z.object({
  type: z.literal("hello"),
  /** The name that the operator gave to the relay (`RELAY_ID`), for example `main`. */
  relayId: Label,
  version: z.string().max(50),
  /** The host for remote peers and TCP visitors. */
  host: z.string().min(1).max(253),
  /** The URL that agents connect to: `ws://…` or `wss://…`, maybe with a path. */
  url: z.url({ protocol: /^wss?$/ }),
  /** The ports for tunnels and networks, without the relay's own port, the first of its range. */
  firstPort: z.int().min(1).max(65_535),
  lastPort: z.int().min(1).max(65_535),
  /** Identifies this run of the relay. */
  epoch: z.string().max(100),
});
export type RelayHello = z.infer<typeof RelayHello>;

export const DeviceStatus = z.object({
  publicKey: z.string().max(44),
  lastHandshakeAtMs: z.number().nullable(),
  /** `address:port`, IPv6 in brackets. */
  endpoint: z.string().nullable(),
  /** From and to the device, since the relay started. */
  rxBytes: z.number(),
  txBytes: z.number(),
});
export type DeviceStatus = z.infer<typeof DeviceStatus>;

/** How a network's agent exchanges datagrams with the relay. */
export const NETWORK_STATES = ["offline", "udp", "websocket"] as const;

export const NetworkStatus = z.object({
  networkId: z.uuid(),
  orgId: z.uuid(),
  state: z.enum(NETWORK_STATES),
  latencyMs: z.number().nullable(),
  loss: z.number().nullable(),
  lastSeenAtMs: z.number(),
  /** null while no agent has reported it. */
  isLocalListening: z.boolean().nullable(),
  /** First messages of a handshake for another server key: a device uses an old configuration. */
  wrongKeyHandshakes: z.int(),
  /** Those that have changed since the last status. */
  devices: z.array(DeviceStatus),
});
export type NetworkStatus = z.infer<typeof NetworkStatus>;

/** Totals of one association since it began, so that a report that arrives twice is counted once. */
export const AssociationUsage = z.object({
  tunnelId: z.uuid(),
  /** `epoch/association` */
  source: z.string().max(200),
  tokenNonce: z.string(),
  connections: z.int(),
  openConnections: z.int(),
  /** From and to visitors. */
  bytesIn: z.number(),
  bytesOut: z.number(),
});
export type AssociationUsage = z.infer<typeof AssociationUsage>;

/** The changes since the last status; the first status after a hello is complete. */
export const RelayStatus = z.object({
  type: z.literal("status"),
  networks: z.array(NetworkStatus),
  tunnels: z.array(AssociationUsage),
});
export type RelayStatus = z.infer<typeof RelayStatus>;

export const RelayToApiMessage = z.discriminatedUnion("type", [RelayHello, RelayStatus]);

/** The close codes with which the API can end an association. */
export const REVOCATION_REASONS = [
  "unauthorized",
  "BUDGET_EXCEEDED",
  "tunnel_deleted",
  "tunnel_expired",
  "tunnel_stopped",
  "connection_ended",
  "network_deleted",
  "server_changed",
] as const;

export const ApiToRelayMessage = z.discriminatedUnion("type", [
  z.object({ type: z.literal("welcome") }),
  /** Ends associations, and revokes tickets that were signed before. */
  z.object({
    type: z.literal("revoke"),
    kind: z.enum(["network", "tunnel"]),
    /** The network or tunnel. Default: all of the token's. */
    id: z.uuid().optional(),
    tokenNonce: z.string().optional(),
    /** Default: every port. */
    port: z.int().optional(),
    reason: z.enum(REVOCATION_REASONS),
    /** Tickets of a generation up to this are refused from now on. */
    untilGeneration: z.int(),
  }),
  /** Blocks that visitors of a TCP tunnel may come from, from the next connection on. */
  z.object({
    type: z.literal("allowed_cidrs"),
    tunnelId: z.uuid(),
    cidrs: z.array(z.string()).nullable(),
    /** A generation: a ticket with a higher one has a later list. */
    asOfMs: z.int(),
  }),
  /** How many of the relay's ports are reserved, for its metrics: sent after a hello and every 30 seconds. */
  z.object({ type: z.literal("ports"), reservedUdp: z.int(), reservedTcp: z.int() }),
]);
export type ApiToRelayMessage = z.infer<typeof ApiToRelayMessage>;
export type Revocation = Extract<ApiToRelayMessage, { type: "revoke" }>;
