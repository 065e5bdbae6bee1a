/** Private networks: WireGuard networks whose server is behind an agent and reached through a relay's port. */
import { z } from "zod";
import { isAddressIn, numberToIpv4, parseCidr } from "../../shared/cidr.ts";
import { NETWORK_STATES } from "../relay/link.ts";
import { Instant, Label, Uuid, VisibleLine, WholeNumber } from "./scalars.ts";

const NETWORK_NAME_MAX_CHARS = 63;
const DEVICE_NAME_MAX_CHARS = 63;

/** A network's block must be inside one of these: RFC 1918 and RFC 6598 (shared address space). */
const PRIVATE_BLOCKS = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"];
const NETWORK_PREFIX_MIN = 16;
const NETWORK_PREFIX_MAX = 30;

/** @returns why a block is not valid for a private network; null when it is valid. */
export function findCidrError(text: string): string | null {
  const cidr = parseCidr(text);
  if (!cidr || !text.includes("/")) return "must be an IPv4 block such as 10.88.0.0/24";
  const { ipv4, prefixLength } = cidr;
  if (!ipv4 || text.includes(":")) return "must be an IPv4 block, not an IPv6 block";
  if (prefixLength < NETWORK_PREFIX_MIN || prefixLength > NETWORK_PREFIX_MAX) {
    return `must have a prefix from /${NETWORK_PREFIX_MIN} to /${NETWORK_PREFIX_MAX}`;
  }
  if (!isAddressIn(numberToIpv4(ipv4.first), PRIVATE_BLOCKS)) {
    return `must be inside one of ${PRIVATE_BLOCKS.join(", ")}`;
  }
  return cidr.text === text ? null : `must not have host bits set: the network is ${cidr.text}`;
}

const OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
/** What of `findCidrError` a pattern can express: all but the host bits. */
const CIDR_PATTERN = String.raw`^\s*(?:10\.${OCTET}|172\.(?:1[6-9]|2[0-9]|3[01])|192\.168|100\.(?:6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7]))\.${OCTET}\.${OCTET}/(?:1[6-9]|2[0-9]|30)\s*$`;

/** IPv4, /16 to /30, inside `PRIVATE_BLOCKS`, in canonical form. */
const NetworkCidr = z
  .string()
  .max(64)
  .trim()
  .superRefine((text, context) => {
    const error = findCidrError(text);
    if (error !== null) context.addIssue(error);
  })
  .meta({ pattern: CIDR_PATTERN })
  .describe("An IPv4 block of private addresses, /16 to /30, without host bits.");

/** `host:port`; an IPv6 address in brackets. */
const ENDPOINT =
  /^(?:\[[0-9A-Fa-f:.]{2,45}\]|(?=[^:]{1,253}:)[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*):(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$/;
const ENDPOINT_MESSAGE = "must be host:port, such as vpn.example.com:51820";

function hasValidAddress(endpoint: string): boolean {
  const [, ipv6] = /^\[(.*)\]/.exec(endpoint) ?? [];
  return ipv6 === undefined || parseCidr(ipv6) !== null;
}

/** A WireGuard key as `wg` writes it: 32 bytes in base64 (RFC 4648 §4), with its padding. */
export const WireGuardKey = z
  .string()
  .regex(/^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/, "must be 32 bytes in base64")
  .regex(/^(?!A{43}=$)/, "must not be all zeros");

export const CreateNetwork = z.object({
  name: VisibleLine(NETWORK_NAME_MAX_CHARS),
  cidr: NetworkCidr,
});

export const RegisterServer = z.object({
  server_public_key: WireGuardKey,
  server_listen_port: WholeNumber(1, 65_535),
  public_endpoint: z
    .string()
    .max(260)
    .regex(ENDPOINT, { error: ENDPOINT_MESSAGE, abort: true })
    .refine(hasValidAddress, ENDPOINT_MESSAGE)
    .optional()
    .describe("For a server that its clients reach without the relay: `host:port`."),
  relay_id: Label.optional().describe("Default: the relay with the most free ports."),
});

export const NetworkRelay = z.object({
  state: z.enum(NETWORK_STATES).describe("How the agent is connected to the relay."),
  latency_ms: z
    .number()
    .nullable()
    .describe("Between agent and relay and back, in milliseconds; null while unknown."),
  loss: z
    .number()
    .nullable()
    .describe(
      "Of the datagrams between agent and relay in the last minute, 0 to 1; null while unknown.",
    ),
  last_seen_at: Instant.nullable(),
  server_listening: z
    .boolean()
    .nullable()
    .describe(
      "Whether the WireGuard server answers on its port behind the agent; null while unknown.",
    ),
  wrong_key_handshakes: z
    .int()
    .describe(
      "Handshakes for another server key since the relay started: a device uses an old configuration.",
    ),
});
export type NetworkRelay = z.infer<typeof NetworkRelay>;

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
  name: VisibleLine(DEVICE_NAME_MAX_CHARS),
  public_key: WireGuardKey,
});

export const Device = z.object({
  id: z.uuid(),
  name: z.string(),
  assigned_ip: z.string().describe("Without a prefix: `10.88.0.2`."),
  public_key: z.string(),
  last_handshake_at: Instant.nullable().describe("As the relay sees it; null while unknown."),
  endpoint: z.string().nullable(),
  rx_bytes: z.number().nullable(),
  tx_bytes: z.number().nullable(),
  created_at: Instant,
});
export type Device = z.infer<typeof Device>;

/** The parameters of a device's path. */
export const DeviceId = z.object({ id: Uuid, device_id: Uuid });

export const DeviceEnrollment = z.object({ device: Device, network_cidr: z.string() });
export type DeviceEnrollment = z.infer<typeof DeviceEnrollment>;
export const NetworkConfig = z.object({ config: z.string() });
export type NetworkConfig = z.infer<typeof NetworkConfig>;

/** The access with which an agent serves a network or a TCP tunnel through its relay. */
export const RelayAccess = z.object({
  ticket: z.string().describe("A JWT of five minutes: protocol/relay/ticket.ts."),
  expires_at: Instant,
  relay: z.object({
    id: z.string(),
    url: z
      .string()
      .describe(
        "The URL of the control connection: `ws://…` or `wss://…`, which `/agent` and `/stream` follow.",
      ),
    host: z.string().describe("The host that visitors and remote peers connect to."),
  }),
  port: z.int(),
  port_replaceable: z
    .boolean()
    .optional()
    .describe(
      "Whether the tunnel can get another port: this one was not asked for, and this is the first ticket for it.",
    ),
});
export type RelayAccess = z.infer<typeof RelayAccess>;
