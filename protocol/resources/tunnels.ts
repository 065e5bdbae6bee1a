/** Tunnels, and the query of an agent's connection. */
import { z } from "zod";
import { TUNNEL_TTL_MAX_SECONDS, TUNNEL_TTL_MIN_SECONDS } from "../limits.ts";
import { Instant, Label } from "./scalars.ts";

export const TunnelProtocol = z.enum(["http", "https", "websocket", "tcp"]);
export const LocalPort = z.int().min(1).max(65_535);
export const TtlSeconds = z.int().min(TUNNEL_TTL_MIN_SECONDS).max(TUNNEL_TTL_MAX_SECONDS);

export const CreateTunnel = z.object({
  localPort: LocalPort,
  /** Left out: a random one. */
  subdomain: Label.optional(),
  protocol: TunnelProtocol.default("http"),
  ttlSeconds: TtlSeconds.optional(),
  projectSlug: Label.optional(),
});

/** The query of an agent's connection. */
export const ConnectQuery = z.object({
  port: z.coerce.number().pipe(LocalPort),
  subdomain: Label.optional(),
  project: Label.optional(),
  protocol: TunnelProtocol.default("http"),
  ttl: z.coerce.number().pipe(TtlSeconds).optional(),
  /** Of an agent that comes back: the tunnel that it served. */
  tunnel: z.uuid().optional(),
});

export const TunnelStatus = z.enum(["inactive", "active", "offline", "expired"]);
/** What starting and stopping a tunnel answer. */
export const StatusOfTunnel = z.object({ id: z.uuid(), status: TunnelStatus });
export const Tunnel = z.object({
  id: z.uuid(),
  name: z.string(),
  subdomain: z.string(),
  projectSlug: z.string(),
  publicUrl: z.string(),
  status: TunnelStatus,
  protocol: TunnelProtocol,
  localPort: z.int(),
  agentConnected: z.boolean(),
  authEnabled: z.boolean(),
  edgeAuthEnabled: z.boolean(),
  maintenance: z.boolean(),
  policyActions: z.int(),
  customDomains: z.array(z.string()),
  bytesIn: z.int(),
  bytesOut: z.int(),
  totalRequests: z.int(),
  createdAt: Instant,
  expiresAt: Instant.nullable(),
  lastSeenAt: Instant.nullable(),
});
export type Tunnel = z.infer<typeof Tunnel>;
