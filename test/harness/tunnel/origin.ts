/** A local server behind a tunnel. It records requests byte for byte, and the test chooses its responses. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { getFraming, MessageReader, type Message } from "./raw-http.ts";

export interface OriginRequest extends Message {
  method: string;
  target: string;
}

/** @returns the bytes of the response, or nothing when it wrote to the socket itself. */
export type Respond = (request: OriginRequest, socket: Socket) => Buffer | string | void;

export interface RawOrigin {
  port: number;
  requests: OriginRequest[];
  respond: Respond;
  stop(): Promise<void>;
}

export const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

export async function startRawOrigin(respond: Respond = () => OK): Promise<RawOrigin> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay();
    socket.on("close", () => sockets.delete(socket));
    void serve(socket).catch(() => socket.destroy());
  });

  async function serve(socket: Socket): Promise<void> {
    const reader = new MessageReader(socket);
    for (let head = await reader.head(); head; head = await reader.head()) {
      const [method = "", target = ""] = head.startLine.split(" ");
      const body = await reader.body(getFraming(head.headers));
      const request = { ...head, method, target, body, interim: [] };
      origin.requests.push(request);
      const answer = origin.respond(request, socket);
      if (answer !== undefined) socket.write(answer, "latin1");
    }
  }

  // All connections of a test at once: the kernel drops those beyond the backlog, and they arrive a second later.
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 });
  await once(server, "listening");
  const origin: RawOrigin = {
    port: (server.address() as AddressInfo).port,
    requests: [],
    respond,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return origin;
}
