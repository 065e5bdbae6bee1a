/** HTTP servers of tests, each on a free port of this machine. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";

export interface HttpServer extends AsyncDisposable {
  origin: string;
  stop(): Promise<void>;
}

export async function startHttpServer(handle: RequestListener): Promise<HttpServer> {
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  async function stop(): Promise<void> {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
  return { origin: `http://127.0.0.1:${port}`, stop, [Symbol.asyncDispose]: stop };
}
