/** Tunnels, and the query of an agent's connection. */
import { z } from "zod";
import { parseHost } from "../../hosts.ts";
import { HOST_MAX_CHARS, SHARDS_MAX } from "../../limits.ts";
import { AllowedCidrs } from "../access/ip-allowlist.ts";
import { Instant, Label, NumberText, onlyWith, Uuid, WholeNumber } from "../scalars.ts";

const TunnelProtocol = z.enum(["http", "https", "websocket", "tcp"]);

/** `https` and `websocket` name what the local server speaks: visitors of such a tunnel send HTTP requests too. */
export function isHttpProtocol(protocol: z.output<typeof TunnelProtocol>): boolean {
  return protocol !== "tcp";
}

const LocalPort = WholeNumber(1, 65_535);
/** A TCP port of a relay. */
const PublicPort = WholeNumber(1, 65_535);
/** In a query. */
const PortText = NumberText(1, 65_535);

function refuseTcpFields(fields: Record<string, unknown>, context: z.RefinementCtx): void {
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const message = "must be given only with protocol tcp";
    context.addIssue({ code: "custom", path: [name], message });
  }
}

export const CreateTunnel = z
  .object({
    localPort: LocalPort,
    subdomain: Label.optional().describe(
      "Default: a random name. Required in a project whose slug has more than 53 characters.",
    ),
    protocol: TunnelProtocol.default("http"),
    ttlSeconds: WholeNumber(1, Number.MAX_SAFE_INTEGER).optional(),
    projectSlug: Label.optional(),
    publicPort: PublicPort.optional().describe(
      "With protocol `tcp`: a port inside the range of a relay. Default: a free one.",
    ),
    relayId: Label.optional().describe(
      "The relay of the port. Default: the connected relay with the most free ports.",
    ),
  })
  .superRefine(({ protocol, publicPort, relayId }, context) => {
    if (isHttpProtocol(protocol)) refuseTcpFields({ publicPort, relayId }, context);
  })
  .meta(onlyWith("protocol", "tcp", "publicPort", "relayId"));

export type CreateTunnel = z.output<typeof CreateTunnel>;

const HostName = z
  .string()
  .max(HOST_MAX_CHARS)
  .transform((text, context) => {
    const host = parseHost(text);
    if (host !== null) return host;
    context.addIssue("must be a host name");
    return z.NEVER;
  });

export const RelayTicketQuery = z.object({
  unusable_port: PortText.optional().describe(
    "The tunnel's port, if it was `port_replaceable` and the relay refused it (`port_unusable`): the ticket is for another one, if one is free.",
  ),
});

/** The query of an agent's connection. */
export const AgentConnectQuery = z
  .object({
    port: PortText,
    subdomain: Label.optional(),
    host: HostName.optional().describe(
      "The public host to serve: one below the service's own domain, or a verified custom domain of the organization.",
    ),
    project: Label.optional(),
    protocol: TunnelProtocol.default("http"),
    ttl: NumberText(1, Number.MAX_SAFE_INTEGER).optional(),
    tunnel: Uuid.optional().describe("From an agent that reconnects: the tunnel that it served."),
    shard: NumberText(1, SHARDS_MAX - 1)
      .optional()
      .describe(
        "With `tunnel`, from the agent that serves it: the number of the object to connect to as well.",
      ),
    remote_port: PortText.optional().describe(
      "With protocol `tcp`: the public port that the agent wants.",
    ),
    private: z
      .enum(["true", "false"])
      .transform((value) => value === "true")
      .optional()
      .describe(
        "With protocol `tcp`: `true` for a tunnel without a public port, which only clients with a token reach.",
      ),
    allow: z
      .string()
      .transform((text) => (text === "off" ? null : text.split(",")))
      .pipe(AllowedCidrs.nullable())
      .optional()
      .describe(
        "With protocol `tcp`: blocks that visitors may come from, separated by commas; `off` removes the list.",
      ),
  })
  .superRefine(
    ({ protocol, remote_port, allow, host, shard, tunnel, private: isPrivate }, context) => {
      if (shard !== undefined && (tunnel === undefined || protocol === "tcp")) {
        const message = "must be given only with tunnel, and not with protocol tcp";
        context.addIssue({ code: "custom", path: ["shard"], message });
      }
      if (protocol !== "tcp") {
        refuseTcpFields({ remote_port, allow, private: isPrivate }, context);
        return;
      }
      if (host !== undefined) {
        const message = "must not be given with protocol tcp";
        context.addIssue({ code: "custom", path: ["host"], message });
      }
      if (isPrivate && remote_port !== undefined) {
        const message = "must not be given for a private tunnel";
        context.addIssue({ code: "custom", path: ["remote_port"], message });
      }
    },
  );

/** How many objects the visitors of a tunnel are spread over. */
const Shards = WholeNumber(1, SHARDS_MAX);
export const TunnelShards = z.object({ shards: Shards });
export const TunnelShardsResult = TunnelShards.extend({ id: z.uuid() });

/** The query of a client of `underpass connect`: a tunnel's id or its subdomain. */
export const ClientConnectQuery = z.object({ tunnel: z.union([Uuid, Label]) });

const TunnelStatus = z.enum(["inactive", "active", "offline", "expired"]);
/** The response to starting or stopping a tunnel. */
export const TunnelStatusResult = z.object({
  id: z.uuid(),
  status: TunnelStatus,
  /** Since when it has been stopped. */
  stoppedAt: Instant.nullable(),
});
export const Tunnel = z.object({
  id: z.uuid(),
  name: z.string(),
  subdomain: z.string(),
  projectSlug: z.string(),
  publicUrl: z.string(),
  status: TunnelStatus,
  protocol: TunnelProtocol,
  localPort: z.int(),
  publicPort: z
    .int()
    .nullable()
    .describe(
      "For a tunnel of protocol `tcp`: the port of its relay that visitors connect to. null for others, and for private ones.",
    ),
  allowedCidrs: z
    .array(z.string())
    .nullable()
    .describe("Blocks that visitors may come from. null: from anywhere."),
  agentConnected: z.boolean(),
  stoppedAt: Instant.nullable(),
  authEnabled: z.boolean(),
  edgeAuthEnabled: z.boolean(),
  maintenance: z.boolean(),
  policyActions: z.int(),
  customDomains: z.array(z.string()),
  shards: Shards,
  bytesIn: z.int(),
  bytesOut: z.int(),
  totalRequests: z.int(),
  createdAt: Instant,
  expiresAt: Instant.nullable(),
  lastSeenAt: Instant.nullable(),
});
export type Tunnel = z.infer<typeof Tunnel>;
