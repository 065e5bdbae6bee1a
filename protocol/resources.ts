/** What travels in the API's bodies: the schemas that validate, document and type them. */
import { z } from "zod";
import {
  LABEL_MAX_CHARS,
  LIST_MAX_ROWS,
  TOKEN_BANDWIDTH_DEFAULT_MBPS,
  TOKEN_NAME_MAX_CHARS,
  TOKEN_SUBDOMAINS_MAX,
  TOKEN_TTL_DEFAULT_HOURS,
  TOKEN_TTL_MAX_HOURS,
  TOKEN_TUNNELS_DEFAULT,
  TUNNEL_TTL_MAX_SECONDS,
  TUNNEL_TTL_MIN_SECONDS,
} from "./limits.ts";
import { LABEL, LABEL_PATTERN } from "./names.ts";

/** Columns of 32 bits. */
const INT32_MAX = 2 ** 31 - 1;
const Instant = z.iso.datetime();
const Label = z.string().regex(LABEL, "must be lower-case letters, digits and inner hyphens");
/** A line of text that a person chose: shown, never interpreted. */
const Line = (maxChars: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(maxChars)
    .regex(/^[^\p{Cc}]*$/u, "must not contain control characters");

// ── Lists ──

export const PageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(LIST_MAX_ROWS).default(LIST_MAX_ROWS),
  after: z.uuid().optional(),
});

// ── Accounts ──

/** For signing up too: there the rules for both are checked once they are normalised. */
export const Credentials = z.object({ email: z.string(), password: z.string() });
export const EmailAddress = z.object({ email: z.string() });
export const EmailCode = z.object({ email: z.string(), code: z.string() });
export const Status = z.object({ status: z.string() });
export const Ok = z.object({ ok: z.literal(true) });

export const AccountSummary = z.object({
  access_token: z.string(),
  user: z.object({ id: z.uuid(), email: z.string() }),
  active_org: z.object({
    id: z.uuid(),
    name: z.string(),
    slug: z.string(),
    role: z.enum(["viewer", "member", "admin", "owner"]),
    approval_status: z.enum(["approved", "pending", "rejected"]),
  }),
  is_superadmin: z.boolean(),
});
export type AccountSummary = z.infer<typeof AccountSummary>;

export const Me = AccountSummary.extend({
  entitlements: z.object({
    plan: z.enum(["free", "pro", "team", "enterprise"]),
    trial_ends_at: Instant.nullable(),
    /** null: tunnels stay. */
    tunnel_ttl_seconds: z.int().nullable(),
  }),
});
export type Me = z.infer<typeof Me>;

export const AccessToken = z.object({ access_token: z.string() });

// ── Machines ──

export const StartDevice = z.object({ label: Line(LABEL_MAX_CHARS).default("command line") });
export const StartedDevice = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: z.string(),
  verification_uri_complete: z.string(),
  /** Seconds. */
  interval: z.int(),
  expires_in: z.int(),
});
export const DeviceCode = z.object({ device_code: z.string() });
export const DeviceQuery = z.object({ code: z.string() });
export const WaitingDevice = z.object({ label: z.string(), user_code: z.string() });
export const DeviceToken = z.object({ wire_bytes_b64: z.string(), label: z.string() });

export const Setup = z.object({
  code: z.string(),
  email: z.string().optional(),
  password: z.string().optional(),
  label: Line(LABEL_MAX_CHARS).default("first machine"),
});
export const SetupDone = DeviceToken.extend({
  email: z.string(),
  /** Only when the caller chose none. */
  password: z.string().optional(),
});
export type SetupDone = z.infer<typeof SetupDone>;

// ── Capability tokens ──

export const MintToken = z.object({
  name: Line(TOKEN_NAME_MAX_CHARS),
  ttlHours: z.int().min(1).max(TOKEN_TTL_MAX_HOURS).default(TOKEN_TTL_DEFAULT_HOURS),
  allowedSubdomains: z
    .array(
      z
        .string()
        .regex(LABEL_PATTERN, "must be lower-case letters, digits, hyphens and * wildcards"),
    )
    .max(TOKEN_SUBDOMAINS_MAX)
    .default([]),
  bandwidthLimitMbps: z.int().min(1).max(INT32_MAX).default(TOKEN_BANDWIDTH_DEFAULT_MBPS),
  tunnelQuota: z.int().min(1).max(INT32_MAX).default(TOKEN_TUNNELS_DEFAULT),
});

export const Token = z.object({
  id: z.uuid(),
  name: z.string(),
  nonce: z.string(),
  kind: z.enum(["agent", "master"]),
  tunnelQuota: z.int(),
  bandwidthLimitMbps: z.int(),
  allowedSubdomains: z.array(z.string()),
  projectSlug: z.string().nullable(),
  monthlyBudgetUsdCents: z.int().nullable(),
  /** Seconds since the epoch. */
  issuedAt: z.int(),
  expiresAt: z.int(),
  revoked: z.boolean(),
});
export type Token = z.infer<typeof Token>;

export const MintedToken = Token.extend({ wireBytes: z.string(), wireBytesLen: z.int() });
export type MintedToken = z.infer<typeof MintedToken>;
export const Nonce = z.object({ nonce: z.string().regex(/^[0-9a-f]{32}$/) });

// ── Tunnels ──

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
});

export const TunnelStatus = z.enum(["inactive", "active", "offline", "expired"]);
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
export const Id = z.object({ id: z.uuid() });
