/** Private networks: WireGuard networks whose server stands behind an agent, reached through a relay's port. */
import { z } from "zod";
import { DEVICE_NAME_MAX_CHARS, NETWORK_NAME_MAX_CHARS } from "../limits/relay.ts";
import { RELAY_ID } from "../relay-link.ts";
import { Instant, Line } from "./scalars.ts";

/** A WireGuard key as `wg` writes it: 32 bytes in base64 (RFC 4648 §4), with its padding. */
export const WireGuardKey = z
  .string()
  .regex(/^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/, "must be 32 bytes in base64");

export const CreateNetwork = z.object({
  name: Line(NETWORK_NAME_MAX_CHARS),
  /** IPv4, /16 to /30, inside RFC 1918 or 100.64.0.0/10 (RFC 6598). */
  cidr: z.string().max(64),
});

export const RegisterServer = z.object({
  server_public_key: WireGuardKey,
  server_listen_port: z.int().min(1).max(65_535),
  /** For a server that its clients reach without the relay: `host:port`. */
  public_endpoint: z.string().max(260).optional(),
  /** Left out: the relay with the most free ports. */
  relay_id: RELAY_ID.optional(),
});

export const NetworkRelay = z.object({
  state: z.enum(["offline", "udp", "websocket"]),
  /** Between agent and relay and back, in milliseconds; null while unknown. */
  latency_ms: z.number().nullable(),
  /** Of the datagrams between agent and relay in the last minute, 0 to 1; null while unknown. */
  loss: z.number().nullable(),
  last_seen_at: Instant.nullable(),
  /** Whether the WireGuard server answers on its port behind the agent; null while unknown. */
  server_listening: z.boolean().nullable(),
  /** Handshakes for another server key since the relay started: a device uses an old configuration. */
  wrong_key_handshakes: z.int(),
});

export const PrivateNetwork = z.object({
  id: z.uuid(),
  name: z.string(),
  cidr: z.string(),
  server_public_key: z.string().nullable(),
  public_endpoint: z.string().nullable(),
  server_listen_port: z.int().nullable(),
  reserved_udp_port: z.int().nullable(),
  relay_id: z.string().nullable(),
  relay: NetworkRelay,
  created_at: Instant,
});
export type PrivateNetwork = z.infer<typeof PrivateNetwork>;

export const EnrollDevice = z.object({
  name: Line(DEVICE_NAME_MAX_CHARS),
  public_key: WireGuardKey,
});

export const Device = z.object({
  id: z.uuid(),
  name: z.string(),
  /** Without a prefix: `10.88.0.2`. */
  assigned_ip: z.string(),
  public_key: z.string(),
  /** As the relay sees it; null while unknown. */
  last_handshake_at: Instant.nullable(),
  endpoint: z.string().nullable(),
  rx_bytes: z.number().nullable(),
  tx_bytes: z.number().nullable(),
  created_at: Instant,
});
export type Device = z.infer<typeof Device>;

export const EnrolledDevice = z.object({ device: Device, network_cidr: z.string() });
export const NetworkConfig = z.object({ config: z.string() });

/** What an agent needs to serve a network or a TCP tunnel at its relay. */
export const RelayAccess = z.object({
  /** A JWT of five minutes: relay-ticket.ts. */
  ticket: z.string(),
  expires_at: Instant,
  relay: z.object({
    id: z.string(),
    /** Of the control connection: `ws://…` or `wss://…`, without a path. */
    url: z.string(),
    /** What visitors and remote peers reach. */
    host: z.string(),
  }),
  port: z.int(),
});
export type RelayAccess = z.infer<typeof RelayAccess>;
