/** HTTP servers of tests on this machine, which can be stopped and started again on the same port. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";

export interface HttpServer extends AsyncDisposable {
  origin: string;
  port: number;
  /** Closes all connections and stops listening. */
  stop(): Promise<void>;
  /** Listens on the same port again. */
  start(): Promise<void>;
}

/** @param port 0: any free one. */
export async function startHttpServer(handle: RequestListener, port = 0): Promise<HttpServer> {
  const server = createServer(handle);
  async function start(): Promise<void> {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
  }
  async function stop(): Promise<void> {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
  await start();
  return { origin: buildLocalOrigin(port), port, start, stop, [Symbol.asyncDispose]: stop };
}

/** The origin of a server of this machine. */
export function buildLocalOrigin(port: number): string {
  return `http://127.0.0.1:${port}`;
}
