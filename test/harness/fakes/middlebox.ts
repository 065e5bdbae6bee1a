/** A proxy in front of a test server that changes one thing, like those of company networks and cafés. */
import { once } from "node:events";
import {
  createServer as createHttpServer,
  request as sendRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { connect, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Certificate } from "./certificate.ts";

interface MiddleboxOptions {
  /** It speaks https with this certificate. */
  certificate?: Certificate;
  /** Answers a request itself. @returns whether it did. */
  answer?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Changes the headers and the body of a response. */
  change?: (headers: Record<string, string>, body: string) => string;
  /** Forwards requests for WebSockets like any other, without their Upgrade header. */
  stripsUpgrade?: boolean;
  /** Answers a request for a WebSocket itself. @returns the whole response. */
  refuseUpgrade?: (path: string) => string | undefined;
}

interface Middlebox extends AsyncDisposable {
  /** With the host `localhost`. */
  url: string;
}

/** @param target the port of the server behind it, at 127.0.0.1. */
export async function startMiddlebox(
  target: number,
  options: MiddleboxOptions,
): Promise<Middlebox> {
  const { certificate } = options;
  const sockets = new Set<Duplex>();
  const server = certificate ? createHttpsServer(certificate) : createHttpServer();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (options.answer?.(request, response) !== true) forward(target, request, response, options);
  });
  if (options.stripsUpgrade !== true) {
    server.on("upgrade", (request: IncomingMessage, near: Duplex) => {
      near.on("error", () => undefined);
      const refusal = options.refuseUpgrade?.(request.url ?? "");
      if (refusal !== undefined) return void near.end(refusal);
      const far = connect(target, "127.0.0.1");
      sockets.add(far);
      far.on("error", () => undefined);
      far.write(`GET ${request.url} HTTP/1.1\r\n${formatHeaders(request)}\r\n`);
      near.pipe(far).pipe(near);
    });
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `${certificate ? "https" : "http"}://localhost:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** The server's own Host, because the server knows the names that it is reached by. */
function formatHeaders({ rawHeaders }: IncomingMessage): string {
  let lines = "";
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const isHost = rawHeaders[at]!.toLowerCase() === "host";
    lines += `${rawHeaders[at]}: ${isHost ? "localhost" : rawHeaders[at + 1]}\r\n`;
  }
  return lines;
}

function forward(
  port: number,
  incoming: IncomingMessage,
  response: ServerResponse,
  { change }: MiddleboxOptions,
): void {
  const { method, url, headers: received } = incoming;
  const { upgrade: _upgrade, connection: _connection, ...others } = received;
  const headers = { ...others, host: "localhost" };
  const options = { host: "127.0.0.1", port, method, path: url, headers, agent: false };
  const request = sendRequest(options, (answer) => {
    let body = "";
    answer.setEncoding("utf8").on("data", (text: string) => (body += text));
    answer.on("end", () => {
      const { "content-length": _length, ...kept } = answer.headers as Record<string, string>;
      const changed = change?.(kept, body) ?? body;
      response.writeHead(answer.statusCode ?? 0, kept).end(changed);
    });
  });
  request.on("error", () => response.destroy());
  incoming.pipe(request);
}
