/**
 * Complete private networks: a server, a relay, agents that run `underpass vpn`, and WireGuard servers behind them. The
 * relay is a process of its own, so that it can fail alone.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { vi } from "vitest";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { runAgent, type RunningAgent } from "../tunnel/agent.ts";
import { mintToken, startApi, type Person, type TestApi } from "../server/api.ts";
import { RELAY_SECRET } from "../server/server-kinds.ts";
import { WAIT_OPTIONS } from "../timeouts.ts";
import { ping } from "./traffic.ts";
import { createPeer, type Endpoint, type WireGuardPeer } from "../wireguard/peer.ts";
import {
  startRelayProcess,
  waitUntilLinked,
  type RelayBehindProxies,
  type RelayProcessOptions,
} from "./relay-process.ts";

/** Its disposal also ends the networks that were created in it, and their agents. */
export interface NetworkStack extends AsyncDisposable {
  api: TestApi;
  owner: Person;
  token: Buffer;
  relay: RelayBehindProxies;
  /** Starts another relay of the same server. */
  startRelay(id: string, options?: Partial<RelayProcessOptions>): Promise<RelayBehindProxies>;
  /** Creates a network whose WireGuard server is registered, listens and echoes. No agent runs yet. */
  createNetwork(options?: NetworkOptions): Promise<TestNetwork>;
}

interface NetworkOptions {
  /** By default the first relay. */
  relayId?: string;
  owner?: Person;
  /** The URL that its agents connect to; by default the server's plain one. */
  serverUrl?: string;
  /** The environment of its agents. */
  env?: Record<string, string>;
}

export interface TestNetwork extends AsyncDisposable {
  id: string;
  name: string;
  server: WireGuardPeer;
  /** The server's address for clients: the relay's port. */
  endpoint: Endpoint;
  read(): Promise<PrivateNetwork>;
  /** Runs `underpass vpn <network> --json`. */
  vpn(options?: VpnOptions): Promise<RunningAgent>;
  /** Runs the agent, and waits until the API reports this transport. */
  serve(transport?: "udp" | "websocket", options?: VpnOptions): Promise<RunningAgent>;
  /** Resolves when the API reports this state of the network's relay. */
  waitForRelayState(state: PrivateNetwork["relay"]["state"]): Promise<void>;
  /** Replaces the server by one with another key on the same port, and registers it. */
  replaceServer(): Promise<WireGuardPeer>;
  /** Returns a client that has completed a handshake through the relay and received a response. */
  connectClient(through?: Endpoint): Promise<WireGuardPeer>;
}

export interface VpnOptions {
  token?: Uint8Array;
  args?: string[];
  env?: Record<string, string>;
}

let networkCount = 0;

/** @param options of the first relay. `env` is also that of the other relays, and of the networks' agents. */
export async function startNetworkStack(
  options: Partial<RelayProcessOptions> = {},
): Promise<NetworkStack> {
  const { env } = options;
  const api = await startApi();
  const owner = await api.owner();
  const token = await newToken(owner);
  const relays: RelayBehindProxies[] = [];
  const networks: TestNetwork[] = [];

  async function startRelay(
    id: string,
    more: Partial<RelayProcessOptions> = {},
  ): Promise<RelayBehindProxies> {
    const relay = await startRelayProcess({
      id,
      apiUrl: api.server.url,
      secret: RELAY_SECRET,
      env,
      ...more,
    });
    relays.push(relay);
    await waitUntilLinked(api, relay);
    return relay;
  }

  const relay = await startRelay("main", options);
  return {
    api,
    owner,
    token,
    relay,
    startRelay,
    async createNetwork(options = {}) {
      const network = await createNetwork(api, { owner, relayId: relay.id, env, ...options });
      networks.push(network);
      return network;
    },
    async [Symbol.asyncDispose]() {
      for (const network of networks) await network[Symbol.asyncDispose]();
      for (const each of relays) await each[Symbol.asyncDispose]();
      await api.stop();
    },
  };
}

/** So that no test waits for a limit. */
const UNLIMITED = { bandwidthLimitMbps: 10_000 };

async function newToken(person: Person): Promise<Buffer> {
  return Buffer.from((await mintToken(person, UNLIMITED)).wireBytes, "base64");
}

export async function createNetwork(
  api: TestApi,
  { owner, relayId, serverUrl = api.server.url, env }: NetworkOptions & { owner: Person },
): Promise<TestNetwork> {
  networkCount += 1;
  const name = `network-${networkCount}`;
  const created = await owner.post<PrivateNetwork>("/private-networks", {
    name,
    cidr: "10.88.0.0/24",
  });
  const { id } = created.body;
  const server = await createPeer({ echo: true });
  const peers = [server];
  const agents: RunningAgent[] = [];

  async function register({ publicKey, port }: WireGuardPeer): Promise<PrivateNetwork> {
    const { status, body } = await owner.put<PrivateNetwork>(`/private-networks/${id}/server`, {
      server_public_key: publicKey,
      server_listen_port: port,
      relay_id: relayId,
    });
    if (status !== 200) throw new Error(`no server: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  const registered = await register(server);
  const [address = "", port = ""] = (registered.public_endpoint ?? "").split(":");
  const endpoint = { address, port: Number(port) };
  const token = await newToken(owner);

  // With the server's key the agent can identify devices.
  const config = join(api.server.dataDir, `${name}.conf`);
  const text = `[Interface]\nPrivateKey = ${server.privateKey}\n`;
  await writeFile(config, text, { mode: 0o600 });
  const vpn: TestNetwork["vpn"] = async (options = {}) => {
    const args = ["vpn", name, "--server", serverUrl, "--token-file", "TOKEN", "--json"];
    const agent = await runAgent([...args, "--config", config, ...(options.args ?? [])], {
      token: options.token ?? token,
      env: options.env ?? env,
    });
    agents.push(agent);
    return agent;
  };
  async function read(): Promise<PrivateNetwork> {
    return (await owner.get<PrivateNetwork>(`/private-networks/${id}`)).body;
  }
  async function waitForRelayState(state: PrivateNetwork["relay"]["state"]): Promise<void> {
    await vi.waitUntil(async () => (await read()).relay.state === state, WAIT_OPTIONS);
  }

  return {
    id,
    name,
    server,
    endpoint,
    read,
    vpn,
    waitForRelayState,
    async serve(transport = "udp", options = {}) {
      const agent = await vpn(options);
      await waitForRelayState(transport);
      return agent;
    },
    async replaceServer() {
      const { port: listenPort } = server;
      await server.close();
      const successor = await createPeer({ echo: true, listenPort });
      peers.push(successor);
      await register(successor);
      return successor;
    },
    async connectClient(through = endpoint) {
      const client = await createPeer();
      peers.push(client);
      await client.handshake(through, server.publicKey);
      // The server sends nothing in a session before it has received data.
      await ping(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const agent of agents) await agent[Symbol.asyncDispose]();
      for (const peer of peers) await peer.close();
    },
  };
}
