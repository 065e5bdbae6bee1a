/**
 * What the API passes along with a connection that it hands over to a tunnel's object. The API has verified the
 * token and the ownership of the tunnel; the object only decides which of several agents serves.
 */
import { z } from "zod";
import { TTL_LIMITS } from "../../protocol/wire/ttl-limits.ts";
import { INTERNAL_HOST } from "../internal-host.ts";

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
  /** Why that is earlier than the agent asked for. Absent: it is not. */
  ttlLimit: z.enum(TTL_LIMITS).optional(),
  bandwidthLimitMbps: z.number(),
  remoteIp: z.string(),
  /** Only for tunnels of protocol `tcp`: the relay's port that visitors connect to. null: the tunnel is private. */
  relay: z.object({ id: z.string(), port: z.int() }).nullable().optional(),
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
