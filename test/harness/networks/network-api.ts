/** The API's routes for private networks in memory, for tests of the agent. It records every request. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Device, PrivateNetwork, RelayAccess } from "../../../protocol/schemas/networks.ts";
import { LIST_MAX_ROWS } from "../../../protocol/limits.ts";
import { numberToIpv4, parseCidr } from "../../../shared/cidr.ts";

export interface FakeNetworkApi extends AsyncDisposable {
  url: URL;
  networks: PrivateNetwork[];
  devices: Device[];
  /** Method, path, headers and body of each request. */
  requests: string[];
  /** Added to the configurations. */
  extraLine: string;
  /** Answers requests for a relay ticket; by default there is no relay. */
  relayAccess: (network: PrivateNetwork) => Promise<RelayAccess>;
  addNetwork(name: string, cidr?: string): PrivateNetwork;
  addDevice(name: string, publicKey: string): Device;
}

interface Answer {
  status: number;
  body: unknown;
}

export async function startNetworkApi(): Promise<FakeNetworkApi> {
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => (text += part));
    request.on("end", () => {
      const { method = "", url = "" } = request;
      api.requests.push([method, url, JSON.stringify(request.headers), text].join(" "));
      const body = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
      void route(api, method, url, body).then((answer) => {
        response.writeHead(answer.status, { "content-type": "application/json" });
        response.end(JSON.stringify(answer.body));
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const api: FakeNetworkApi = {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    networks: [],
    devices: [],
    requests: [],
    extraLine: "",
    relayAccess: () => Promise.reject(new Error("there is no relay")),
    addNetwork(name, cidr = "10.88.0.0/24") {
      const network = newNetwork(name, cidr);
      api.networks.push(network);
      return network;
    },
    addDevice(name, publicKey) {
      const [network] = api.networks;
      const first = parseCidr(network?.cidr ?? "10.88.0.0/24")!.ipv4!.first;
      const device = {
        id: randomUUID(),
        name,
        assigned_ip: numberToIpv4(first + 2 + api.devices.length),
        public_key: publicKey,
        last_handshake_at: null,
        endpoint: null,
        rx_bytes: null,
        tx_bytes: null,
        created_at: new Date().toISOString(),
      };
      api.devices.push(device);
      return device;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return api;
}

async function route(
  api: FakeNetworkApi,
  method: string,
  url: string,
  body: Record<string, unknown>,
): Promise<Answer> {
  const { pathname, searchParams } = new URL(url, api.url);
  const [, , id, part, deviceId, config] = pathname.split("/");
  if (id === undefined) {
    if (method === "GET") return buildOkAnswer(api.networks);
    return { status: 201, body: api.addNetwork(String(body.name), String(body.cidr)) };
  }
  const network = api.networks.find((each) => each.id === id);
  if (!network) return buildErrorAnswer(404, "not_found", "there is no such network");
  if (part === "server") {
    network.server_public_key = String(body.server_public_key);
    network.server_listen_port = Number(body.server_listen_port);
    network.public_endpoint = "127.0.0.1:40001";
    return buildOkAnswer(network);
  }
  if (method === "DELETE" && part === undefined) {
    api.networks = api.networks.filter((each) => each !== network);
    return buildOkAnswer({});
  }
  if (network.server_public_key === null) {
    return buildErrorAnswer(409, "server_not_registered", "the network has no server yet");
  }
  if (part === "relay-ticket") {
    return api
      .relayAccess(network)
      .then(buildOkAnswer, (error: Error) => buildErrorAnswer(503, "unavailable", error.message));
  }
  if (part === "server-config") return buildOkAnswer({ config: serverConfig(api, network) });
  if (part !== "devices") return buildErrorAnswer(404, "not_found", "there is no such route");
  if (method === "POST") {
    const device = api.addDevice(String(body.name), String(body.public_key));
    return { status: 201, body: { device, network_cidr: network.cidr } };
  }
  if (deviceId === undefined) {
    const after = searchParams.get("after");
    const start = api.devices.findIndex((each) => each.id === after) + 1;
    return buildOkAnswer(api.devices.slice(start, start + LIST_MAX_ROWS));
  }
  const device = api.devices.find((each) => each.id === deviceId);
  if (!device) return buildErrorAnswer(404, "not_found", "there is no such device");
  if (config !== undefined) return buildOkAnswer({ config: deviceConfig(api, network, device) });
  api.devices = api.devices.filter((each) => each !== device);
  return buildOkAnswer({});
}

function buildOkAnswer(body: unknown): Answer {
  return { status: 200, body };
}

function buildErrorAnswer(status: number, error: string, message: string): Answer {
  return { status, body: { error, message } };
}

function newNetwork(name: string, cidr: string): PrivateNetwork {
  return {
    id: randomUUID(),
    name,
    cidr,
    server_public_key: null,
    public_endpoint: null,
    server_listen_port: null,
    reserved_udp_port: null,
    relay_id: null,
    relay: {
      state: "offline",
      latency_ms: null,
      loss: null,
      last_seen_at: null,
      server_listening: null,
      wrong_key_handshakes: 0,
    },
    created_at: new Date().toISOString(),
  };
}

function serverConfig(api: FakeNetworkApi, network: PrivateNetwork): string {
  const prefix = parseCidr(network.cidr)!;
  return [
    "[Interface]",
    "PrivateKey = <PASTE_SERVER_PRIVATE_KEY>",
    `Address = ${numberToIpv4(prefix.ipv4!.first + 1)}/${prefix.prefixLength}`,
    `ListenPort = ${network.server_listen_port}`,
    "MTU = 1380",
    `# Reached through the relay at ${network.public_endpoint}`,
    api.extraLine,
    ...api.devices.flatMap((device) => [
      "",
      `# ${device.name}`,
      "[Peer]",
      `PublicKey = ${device.public_key}`,
      `AllowedIPs = ${device.assigned_ip}/32`,
    ]),
    "",
  ].join("\n");
}

function deviceConfig(api: FakeNetworkApi, network: PrivateNetwork, device: Device): string {
  return [
    "[Interface]",
    "PrivateKey = <PASTE_DEVICE_PRIVATE_KEY>",
    `Address = ${device.assigned_ip}/32`,
    api.extraLine,
    "",
    "[Peer]",
    `PublicKey = ${network.server_public_key}`,
    `Endpoint = ${network.public_endpoint}`,
    `AllowedIPs = ${network.cidr}`,
    "PersistentKeepalive = 25",
    "",
  ].join("\n");
}
