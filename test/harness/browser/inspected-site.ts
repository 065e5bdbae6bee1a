/** A tunnel whose requests the inspector of the dashboard shows. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { ApiOptions, TestApi } from "../server/api.ts";
import { startTunnelOwner, type OwnedTunnel, type TunnelOwner } from "../tunnel/owned-tunnel.ts";

export interface InspectedSite {
  api: TestApi;
  email: string;
  owned: TunnelOwner;
  tunnel: OwnedTunnel;
  /** Sends requests with these paths, one after another. The status of a response is the first number in its path. */
  visit(...paths: string[]): Promise<void>;
  /** Closes the tunnels. The server is stopped by the caller. */
  close(): Promise<void>;
}

/** @param subdomain unique for each test file. */
export async function startInspectedSite(
  subdomain: string,
  options: ApiOptions = {},
): Promise<InspectedSite> {
  const site = await startSite();
  const owned = await startTunnelOwner(options);
  const { port } = site.address() as AddressInfo;
  const tunnel = await owned.expose(subdomain, port);
  return {
    api: owned.api,
    email: owned.owner.email,
    owned,
    tunnel,
    async visit(...paths) {
      for (const path of paths) await tunnel.visit(path);
    },
    async close() {
      await tunnel.agent.close();
      site.close();
    },
  };
}

async function startSite(): Promise<Server> {
  const server = createServer((request, answer) => {
    const status = Number(/\d{3}/.exec(request.url ?? "")?.[0] ?? 200);
    request.resume().on("end", () => answer.writeHead(status).end(`You asked for ${request.url}`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}
