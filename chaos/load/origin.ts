/** The local server behind the tunnels: records each request that arrives, and checks the bodies of uploads. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { WebSocketServer } from "ws";
import { REQUEST_KINDS, type History, type RequestKind } from "../history.ts";
import { waitForDrain } from "../backpressure.ts";
import { BodyComparison, createBody } from "./bodies.ts";

/** Set by the tunnel's policy to the number of the policy. */
export const POLICY_HEADER = "x-chaos-policy";

export interface Origin extends AsyncDisposable {
  httpPort: number;
  /** Sends back what it receives. */
  tcpPort: number;
}

export async function startOrigin(history: History): Promise<Origin> {
  const server = createServer((request, response) => {
    void respond(history, request, response).catch(() => response.destroy());
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) => {
    socket.on("error", () => undefined);
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  const tcpSockets = new Set<Socket>();
  const tcp = createTcpServer((socket) => {
    tcpSockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => tcpSockets.delete(socket));
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  tcp.listen(0, "127.0.0.1");
  await Promise.all([once(server, "listening"), once(tcp, "listening")]);
  return {
    httpPort: (server.address() as AddressInfo).port,
    tcpPort: (tcp.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate();
      for (const socket of tcpSockets) socket.destroy();
      server.close();
      server.closeAllConnections();
      tcp.close();
      await Promise.all([once(server, "close"), once(tcp, "close")]);
    },
  };
}

async function respond(
  history: History,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? "/", "http://origin");
  const kind = REQUEST_KINDS.find((name) => url.pathname === `/${name}`);
  const id = url.searchParams.get("id") ?? "";
  if (kind === undefined) return void response.writeHead(404).end();
  const seed = Number(url.searchParams.get("seed"));
  const bytes = Number(url.searchParams.get("bytes"));
  response.setHeader(POLICY_HEADER, String(request.headers[POLICY_HEADER] ?? ""));
  const arrival = { type: "arrival", atMs: history.now(), id, kind } as const;
  if (kind !== "upload") history.add(arrival);
  switch (kind) {
    case "page":
    case "order":
      request.resume();
      return void response.end(id);
    case "upload": {
      const body = await readUpload(request, new BodyComparison(seed, bytes));
      history.add({ ...arrival, body });
      return void response.end(id);
    }
    case "download":
    case "broken-download":
      return sendDownload(response, kind, seed, bytes);
  }
}

async function readUpload(
  request: IncomingMessage,
  comparison: BodyComparison,
): Promise<"complete" | "corrupt" | "cut"> {
  try {
    for await (const part of request) comparison.add(part as Buffer);
  } catch {
    return "cut";
  }
  if (!request.complete) return "cut";
  return comparison.findDifference() === undefined ? "complete" : "corrupt";
}

/** A broken one ends in the middle: its visitor must notice. Every other body has no announced length. */
async function sendDownload(
  response: ServerResponse,
  kind: RequestKind,
  seed: number,
  bytes: number,
): Promise<void> {
  const isBroken = kind === "broken-download";
  if (seed % 2 === 0) response.setHeader("content-length", bytes);
  for (const part of createBody(seed, isBroken ? Math.floor(bytes / 2) : bytes)) {
    if (!response.write(part)) await waitForDrain(response);
    if (response.destroyed) return;
  }
  if (isBroken) response.destroy();
  else response.end();
}
