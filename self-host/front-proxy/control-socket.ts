/** Takes requests of the server and of the Worker, on a socket that only their user can open. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import {
  DEPARTED_PATH,
  formatKeys,
  parseKeys,
  toConnectionPath,
} from "../../protocol/front-proxy/connection-key.ts";
import type { MetricFamily } from "../../shared/metrics/exposition.ts";
import { createServer } from "../../sockets/node-http.ts";

interface ControlOptions {
  /** For `GET /metrics`. */
  readMetrics(): MetricFamily[];
  /** For `DELETE` of the path of a visitor's connection. @returns false when there is no such connection. */
  cutConnection(key: string): boolean;
  /** For `POST` of the keys of visitors' connections. */
  isConnected(key: string): boolean;
}

const CONNECTIONS_PATH = toConnectionPath("");

export function createControlServer(options: ControlOptions): Server {
  const server = createServer((request, response) => {
    const { method, url = "" } = request;
    if (method === "DELETE" && url.startsWith(CONNECTIONS_PATH)) {
      response.statusCode = options.cutConnection(url.slice(CONNECTIONS_PATH.length)) ? 204 : 404;
      response.end();
    } else if (method === "POST" && url === DEPARTED_PATH) {
      void answerDeparted(request, response, options);
    } else if (method === "GET" && url === "/metrics") {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(options.readMetrics()));
    } else response.writeHead(404).end();
  });
  // The front proxy works without it.
  return server.on("error", ({ message }) =>
    console.error(
      `there are no metrics of the front proxy, and responses that break off stay open: ${message}`,
    ),
  );
}

async function answerDeparted(
  request: IncomingMessage,
  response: ServerResponse,
  options: ControlOptions,
): Promise<void> {
  try {
    const keys = parseKeys(await text(request));
    response.end(formatKeys(keys.filter((key) => !options.isConnected(key))));
  } catch {
    // The request broke off.
    response.destroy();
  }
}
