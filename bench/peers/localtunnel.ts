/**
 * Another tunnel for comparison in the same run: the `localtunnel` client from npm, and a server for it. In its
 * protocol a request for a tunnel returns a port, the client opens a pool of connections to that port, and each
 * visitor's request is sent over one of them.
 */
import { Agent, createServer, request as httpRequest } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { Duplex } from "node:stream";
import localtunnel from "localtunnel";
import type { Peer } from "./peer.ts";

const POOL_CONNECTIONS = 10;

export async function startLocaltunnel(originPort: number): Promise<Peer> {
  const free: Socket[] = [];
  const wanted: ((socket: Socket) => void)[] = [];
  const pool = createTcpServer((socket) => {
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    const next = wanted.shift();
    if (next) next(socket);
    else free.push(socket);
  });
  const agent = new (class extends Agent {
    override createConnection(
      _options: unknown,
      done: (error: Error | null, stream: Duplex) => void,
    ): undefined {
      const socket = free.pop();
      if (socket) done(null, socket);
      else wanted.push((arrived) => done(null, arrived));
    }
  })({ keepAlive: true, maxSockets: POOL_CONNECTIONS, maxFreeSockets: POOL_CONNECTIONS });

  const server = createServer((visit, answer) => {
    if (visit.url?.startsWith("/?new") || visit.url === "/bench") {
      const { port } = pool.address() as AddressInfo;
      const url = `http://bench.localhost:${(server.address() as AddressInfo).port}`;
      answer.setHeader("content-type", "application/json");
      answer.end(JSON.stringify({ id: "bench", port, max_conn_count: POOL_CONNECTIONS, url }));
      return;
    }
    const { method, url: path, headers } = visit;
    const forwarded = httpRequest({ agent, method, path, headers }, (origin) => {
      answer.writeHead(origin.statusCode ?? 502, origin.headers);
      origin.pipe(answer);
    });
    forwarded.on("error", () => answer.destroy());
    visit.pipe(forwarded);
  });
  await new Promise<void>((resolve) => pool.listen(0, "127.0.0.1", resolve));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const tunnel = await localtunnel({
    port: originPort,
    host: `http://127.0.0.1:${port}`,
    local_host: "127.0.0.1",
    subdomain: "bench",
  });
  return {
    name: "localtunnel",
    port,
    host: `bench.localhost:${port}`,
    processes: [{ name: "both ends", pid: process.pid }],
    stop(): Promise<void> {
      tunnel.close();
      agent.destroy();
      pool.close();
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
