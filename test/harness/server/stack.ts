/** A server of the pool with an account, and tunnels of an agent in this process. */
import { type ExposedTunnel, type ExposeOptions, expose } from "../../../agent/expose.ts";
import { exchange, type Answer } from "../tunnel/raw-http.ts";
import { mintToken, startApi, type Person } from "./api.ts";
import type { TestServer } from "./server.ts";

export interface Stack {
  server: TestServer;
  owner: Person;
  /** Opens a tunnel with an agent in this process. */
  expose(options: Partial<ExposeOptions>): Promise<ExposedTunnel>;
  /** Sends a request to a tunnel. `headers` are additional lines, each with its line break. */
  visit(subdomain: string, path?: string, headers?: string, method?: string): Promise<Answer>;
  stop(): Promise<void>;
}

/** As fast as the agent of the first account, so that no test waits for a limit. */
const UNLIMITED = { bandwidthLimitMbps: 10_000, tunnelQuota: 1_000 };

export async function startStack(): Promise<Stack> {
  const api = await startApi();
  const { server } = api;
  const tunnels: ExposedTunnel[] = [];
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner, UNLIMITED);
  const token = Buffer.from(wireBytes, "base64");
  return {
    server,
    owner,
    async expose(options) {
      const tunnel = await expose({ server: server.url, token, ...options });
      tunnels.push(tunnel);
      return tunnel;
    },
    visit: (subdomain, path = "/", headers = "", method = "GET") =>
      exchange(
        server.port,
        `${method} ${path} HTTP/1.1\r\nHost: ${subdomain}.localhost:${server.port}\r\n${headers}\r\n`,
      ),
    async stop() {
      await Promise.all(tunnels.map((tunnel) => tunnel.close()));
      await api.stop();
    },
  };
}
