/** A network in an in-memory API, behind a real relay. Its server is a WireGuard peer of the test. */
import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { runAgent, type RunningAgent } from "../tunnel/agent.ts";
import { createTemporaryDir } from "../directories.ts";
import { startTestRelay, type RelayWithFakeApi } from "../relay/test-relay.ts";
import { createPeer, type WireGuardPeer } from "../wireguard/peer.ts";
import { startNetworkApi, type FakeNetworkApi } from "./network-api.ts";

export interface ServedNetwork extends AsyncDisposable {
  relay: RelayWithFakeApi;
  api: FakeNetworkApi;
  network: PrivateNetwork;
  /** Echoes all payloads. */
  server: WireGuardPeer;
  /** A home directory with a token and the server's key, as --setup stores it. */
  home: string;
  /** The arguments of `underpass`. */
  args: string[];
  /** Runs `underpass vpn home` with these additional options. */
  vpn(...options: string[]): Promise<RunningAgent>;
  /** Returns a device named `laptop` that has completed a handshake through the relay and received a response. */
  connectDevice(): Promise<WireGuardPeer>;
}

/** @param env the environment of the agents. */
export async function startServedNetwork(env: Record<string, string> = {}): Promise<ServedNetwork> {
  const relay = await startTestRelay();
  const api = await startNetworkApi();
  const server = await createPeer({ echo: true });
  const network = api.addNetwork("home");
  network.server_public_key = server.publicKey;
  network.server_listen_port = server.port;
  const home = await createTemporaryDir();
  await writeFile(join(home, "token"), "token");
  const keys = join(home, ".config/underpass/networks/home");
  await mkdir(keys, { recursive: true });
  await writeFile(join(keys, "private.key"), `${server.privateKey}\n`, { mode: 0o600 });
  const org = randomUUID();
  const port = relay.ports[0]!;
  api.relayAccess = async () => ({
    ticket: await relay.networkTicket({
      sub: network.id,
      org,
      port,
      server_public_key: server.publicKey,
    }),
    expires_at: new Date(Date.now() + 300_000).toISOString(),
    relay: { id: relay.id, url: relay.url, host: "127.0.0.1" },
    port,
  });
  const args = ["vpn", "home", "--server", api.url.origin];
  return {
    relay,
    api,
    network,
    server,
    home,
    args,
    vpn: (...options) =>
      runAgent([...args, "--token-file", "TOKEN", ...options], {
        token: Buffer.from("token"),
        env: { XDG_CONFIG_HOME: join(home, ".config"), ...env },
      }),
    async connectDevice() {
      const device = await createPeer();
      api.devices = [];
      api.addDevice("laptop", device.publicKey);
      await device.handshake({ address: "127.0.0.1", port }, server.publicKey);
      device.send("hello");
      await device.waitForPayload("hello");
      return device;
    },
    async [Symbol.asyncDispose]() {
      await server.close();
      await api[Symbol.asyncDispose]();
      await relay[Symbol.asyncDispose]();
    },
  };
}
