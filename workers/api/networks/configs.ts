/**
 * WireGuard configurations, in the form that `wg-quick` reads (wg-quick(8)). Private keys are placeholders: they
 * are made on the machines that use them and never come here.
 */

/** Leaves room for PPPoE and the relay's header on the agent's leg: a 1,420 byte default would be cut. */
const SERVER_MTU = 1380;
const KEEPALIVE_SECONDS = 25;

export interface ServerConfig {
  networkName: string;
  address: string;
  prefix: number;
  listenPort: number;
  /** Where clients reach the server. */
  endpoint: string | null;
  /** Whether the relay leads there, so that an agent must run. */
  isRelayed: boolean;
  devices: { name: string; address: string; publicKey: string }[];
}

export function writeServerConfig(server: ServerConfig): string {
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

export interface ClientConfig {
  networkName: string;
  deviceName: string;
  address: string;
  serverPublicKey: string;
  /** `host:port` */
  endpoint: string;
  cidr: string;
}

/** Neither DNS nor a default route: only the network's own traffic goes through it. */
export function writeClientConfig(client: ClientConfig): string {
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

/** Names are chosen by people: nothing in one may end its comment, or show it as another text. */
function toComment(name: string): string {
  return name.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
}
