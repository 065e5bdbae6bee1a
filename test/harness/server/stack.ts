/** A complete self-hosted server with an account, and tunnels of an agent in this process. */
import { type ExposedTunnel, type ExposeOptions, expose } from "../../../agent/expose.ts";
import { SetupResult } from "../../../protocol/schemas/accounts/devices.ts";
import { exchange, type Answer } from "../tunnel/raw-http.ts";
import { startServer, type ServerOptions, type TestServer } from "./server.ts";

export interface Stack {
  server: TestServer;
  token: Buffer;
  /** Opens a tunnel with an agent in this process. */
  expose(options: Partial<ExposeOptions>): Promise<ExposedTunnel>;
  /** Sends a request to a tunnel. `headers` are additional lines, each with its line break. */
  visit(subdomain: string, path?: string, headers?: string, method?: string): Promise<Answer>;
  stop(): Promise<void>;
}

export async function startStack(options: ServerOptions = {}): Promise<Stack> {
  const server = await startServer(options);
  const tunnels: ExposedTunnel[] = [];
  const token = await createFirstAccount(server);
  return {
    server,
    token,
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
      await server.stop();
    },
  };
}

/** Creates the first account of a server. @returns an unrestricted token of it. */
export async function createFirstAccount(server: TestServer): Promise<Buffer> {
  const answer = await fetch(`${server.url}/setup`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code: server.setupCode, label: "test" }),
  });
  if (answer.status !== 201) throw new Error(`no account: ${await answer.text()}`);
  const { wire_bytes_b64: bytes } = SetupResult.parse(await answer.json());
  return Buffer.from(bytes, "base64");
}
