/**
 * WireGuard configurations in the format of wg-quick(8). Private keys are placeholders: each is generated on the
 * machine that uses it and is never sent to this service.
 */

/** Leaves room for PPPoE and for the relay's header between relay and agent, which the default of 1,420 bytes does not. */
const SERVER_MTU = 1380;
const KEEPALIVE_SECONDS = 25;

interface ServerConfig {
  networkName: string;
  address: string;
  prefix: number;
  listenPort: number;
  /** The address at which clients reach the server, as `host:port`. */
  endpoint: string | null;
  /** Whether the endpoint is at the relay, which requires a running agent. */
  isRelayed: boolean;
  devices: { name: string; address: string; publicKey: string }[];
}

export function formatServerConfig(server: ServerConfig): string {
  const name = toComment(server.networkName);
  const hint = server.isRelayed
    ? `# Relay: clients reach this server at ${server.endpoint}. Keep "underpass vpn" running on this machine.`
    : `# No relay: clients reach this server at ${server.endpoint}.`;
  const lines = [
    `# Server of the private network ${name}`,
    hint,
    "[Interface]",
    "PrivateKey = <PASTE_SERVER_PRIVATE_KEY>",
    `Address = ${server.address}/${server.prefix}`,
    `ListenPort = ${server.listenPort}`,
    `MTU = ${SERVER_MTU}`,
  ];
  for (const device of server.devices) {
    lines.push(
      "",
      `# ${toComment(device.name)}`,
      "[Peer]",
      `PublicKey = ${device.publicKey}`,
      `AllowedIPs = ${device.address}/32`,
    );
  }
  return `${lines.join("\n")}\n`;
}

interface ClientConfig {
  networkName: string;
  deviceName: string;
  address: string;
  serverPublicKey: string;
  /** `host:port` */
  endpoint: string;
  cidr: string;
}

/** Without DNS and without a default route: only the traffic of the network goes through the tunnel. */
export function formatClientConfig(client: ClientConfig): string {
  return [
    `# ${toComment(client.deviceName)} in the private network ${toComment(client.networkName)}`,
    "[Interface]",
    "PrivateKey = <PASTE_CLIENT_PRIVATE_KEY>",
    `Address = ${client.address}/32`,
    "",
    "[Peer]",
    `PublicKey = ${client.serverPublicKey}`,
    `Endpoint = ${client.endpoint}`,
    `AllowedIPs = ${client.cidr}`,
    `PersistentKeepalive = ${KEEPALIVE_SECONDS}`,
    "",
  ].join("\n");
}

/** Names are user input: a name must not end its comment, nor change how the comment is displayed. */
function toComment(name: string): string {
  return name.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
}
