/** The local server of the tunnel that is attacked: `/never` gets no answer, `/bytes?n=` many bytes, WebSockets an echo. It runs until its process ends. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

const CHUNK = Buffer.alloc(256 * 1024, "a");

export async function startAbusedOrigin(): Promise<{ port: number }> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://local");
    if (url.pathname === "/never") return;
    if (url.pathname !== "/bytes") return void response.end("ok");
    let left = Number(url.searchParams.get("n"));
    const more = (): void => {
      while (left > 0 && !response.destroyed) {
        left -= CHUNK.length;
        if (!response.write(CHUNK)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) => {
    socket.on("error", () => undefined);
    socket.on("message", (data) => socket.send(data));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port };
}
