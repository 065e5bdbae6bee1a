/** A local server for forwarded webhooks: it records the requests, and the test chooses its responses. */
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

interface ReceivedHook {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

export interface HookServer extends AsyncDisposable {
  port: number;
  /** In the order of arrival. */
  received: ReceivedHook[];
  /** Chooses the status of each response. */
  respond: (hooked: ReceivedHook) => number;
  /** Stops listening. */
  close(): Promise<void>;
  /** Listens on the same port again. */
  listen(): Promise<void>;
}

export async function startHookServer(): Promise<HookServer> {
  const received: ReceivedHook[] = [];
  let server: Server | undefined;
  let port = 0;
  async function listen(): Promise<void> {
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method = "", url = "", headers } = request;
        const hooked = { method, url, headers, body: Buffer.concat(chunks) };
        received.push(hooked);
        response.writeHead(hooks.respond(hooked)).end("noted");
      });
    });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
  }
  async function close(): Promise<void> {
    const closing = server;
    server = undefined;
    if (!closing) return;
    const closed = once(closing, "close");
    closing.close();
    closing.closeAllConnections();
    await closed;
  }
  await listen();
  const hooks: HookServer = {
    port,
    received,
    respond: () => 200,
    listen,
    close,
    [Symbol.asyncDispose]: close,
  };
  return hooks;
}
