/** Tunnels on a complete server, and their owner. */
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  mintToken,
  startApi,
  type ApiOptions,
  type Person,
  type Reply,
  type TestApi,
} from "../server/api.ts";
import { exchange, findHeader, type Answer } from "./raw-http.ts";

export interface OwnedTunnel {
  id: string;
  agent: ExposedTunnel;
  /** `PUT /tunnels/{id}/<setting>`. */
  put(setting: string, body?: object): Promise<Reply<{ error?: string }>>;
  remove(setting: string): Promise<Reply<unknown>>;
  getListed(): Promise<Tunnel>;
  /** Sends one request. @param lines additional headers. */
  visit(path?: string, lines?: Record<string, string>, method?: string): Promise<Answer>;
}

export interface TunnelOwner {
  api: TestApi;
  owner: Person;
  /** With which the agents serve the tunnels, in base64. */
  token: string;
  /** A tunnel to a local port. */
  expose(subdomain: string, port: number): Promise<OwnedTunnel>;
  stop(): Promise<void>;
}

export async function startTunnelOwner(options: ApiOptions = {}): Promise<TunnelOwner> {
  const api = await startApi(options);
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner, { tunnelQuota: 50 });
  const agents: ExposedTunnel[] = [];
  const { server } = api;

  async function exposeOwned(subdomain: string, port: number): Promise<OwnedTunnel> {
    const token = Buffer.from(wireBytes, "base64");
    const agent = await expose({ server: server.url, token, port, subdomain });
    agents.push(agent);
    const { tunnelId: id } = agent;
    return {
      id,
      agent,
      put: (setting, body = {}) =>
        owner.send("PUT", `/tunnels/${id}/${setting}`, {
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
      remove: (setting) => owner.delete(`/tunnels/${id}/${setting}`),
      async getListed() {
        const { body } = await owner.get<Tunnel[]>("/tunnels");
        return body.find((tunnel) => tunnel.id === id)!;
      },
      visit(path = "/", lines = {}, method = "GET") {
        const host = `${subdomain}.localhost:${server.port}`;
        const head = Object.entries({ host, ...lines }).map(([k, v]) => `${k}: ${v}\r\n`);
        return exchange(server.port, `${method} ${path} HTTP/1.1\r\n${head.join("")}\r\n`);
      },
    };
  }

  return {
    api,
    owner,
    token: wireBytes,
    expose: exposeOwned,
    async stop() {
      await Promise.all(agents.map((agent) => agent.close()));
      await api.stop();
    },
  };
}

/** The service's error code, or `passed` when the local server answered. */
export function findErrorCode({ headers }: Answer): string {
  return findHeader(headers, "underpass-error") ?? "passed";
}

export function basicAuthorization(username: string, password: string): { authorization: string } {
  const text = Buffer.from(`${username}:${password}`).toString("base64");
  return { authorization: `Basic ${text}` };
}
