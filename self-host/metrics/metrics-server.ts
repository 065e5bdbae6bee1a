/**
 * `GET /metrics` for the operator's Prometheus, on an address of its own. Every caller must send the token, those of this
 * machine too: programs of other users and pages in browsers reach the loopback address as well.
 */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  EXPOSITION_TYPES,
  formatFamilies,
  type MetricFamily,
} from "../../shared/metrics/exposition.ts";
import { parseBearerSecret } from "../../shared/bearer-token.ts";
import { equalInConstantTime } from "../../shared/constant-time.ts";
import { getErrorMessage } from "../../shared/error-message.ts";
import { formatHostAndPort } from "../../shared/hosts.ts";
import { StartError } from "../errors.ts";
import { readParts, type MetricsPart } from "./parts.ts";
import { createServer } from "../../sockets/node-http.ts";

/** Connections of scrapers, and of strangers where the address is public. */
export const METRICS_CONNECTIONS_MAX = 32;
const HEADERS_MAX_MS = 5_000;
const HEADERS_CHECK_MS = 1_000;
/** Longer than the time limit of every part. */
const IDLE_MAX_MS = 10_000;

interface MetricsServerOptions {
  host: string;
  /** 0: any free port. */
  port: number;
  token: string;
  parts: readonly MetricsPart[];
}

interface MetricsServer {
  url: string;
  close(): Promise<void>;
}

/** @throws StartError when the port can't be used. */
export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { host, port, token, parts } = options;
  let reading: Promise<MetricFamily[]> | undefined;
  /** Scrapes at the same time share one reading, so that more scrapers cost the parts nothing more. */
  function read(): Promise<MetricFamily[]> {
    reading ??= readParts(parts).finally(() => (reading = undefined));
    return reading;
  }

  const server = createServer(
    {
      headersTimeout: HEADERS_MAX_MS,
      requestTimeout: HEADERS_MAX_MS,
      connectionsCheckingInterval: HEADERS_CHECK_MS,
    },
    (request, response) => void handle(request, response),
  );
  server.maxConnections = METRICS_CONNECTIONS_MAX;
  server.setTimeout(IDLE_MAX_MS, (socket) => socket.destroy());

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const secret = parseBearerSecret(request.headers.authorization);
    if (secret === null || !equalInConstantTime(secret, token)) {
      response.setHeader("www-authenticate", "Bearer");
      return end(response, 401, "the metrics require METRICS_TOKEN as a bearer token\n");
    }
    if (request.url !== "/metrics") return end(response, 404, "not found\n");
    if (request.method !== "GET") {
      response.setHeader("allow", "GET");
      return end(response, 405, "method not allowed\n");
    }
    const accepted = request.headers.accept ?? "";
    const format = accepted.includes("application/openmetrics-text") ? "openmetrics" : "prometheus";
    end(response, 200, formatFamilies(await read(), format), EXPOSITION_TYPES[format]);
  }

  try {
    await once(server.listen(port, host), "listening");
  } catch (error) {
    throw new StartError(
      `METRICS_PORT: can't listen on ${host} port ${port}: ${getErrorMessage(error)}; choose a free port`,
    );
  }
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${formatHostAndPort(host, bound)}/metrics`,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function end(
  response: ServerResponse,
  status: number,
  body: string,
  type = "text/plain; charset=utf-8",
): void {
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
  response.end(body);
}
