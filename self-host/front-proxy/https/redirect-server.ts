/**
 * Plain HTTP beside HTTPS: each request is redirected to the same address with https, except those by which a certificate
 * authority verifies that a host belongs to this server.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { countOrClose, type HttpsServerOptions } from "./https-server.ts";
import { createServer } from "../../../sockets/node-http.ts";

/** How long a connection may take for its request. */
const REQUEST_MAX_MS = 10_000;
const HTTPS_DEFAULT_PORT = 443;
/** A name or an IPv4 address, or an IPv6 address in brackets; a port may follow. */
const HOST = /^([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

interface RedirectServerOptions extends Pick<HttpsServerOptions, "admit"> {
  /** The public port of HTTPS. */
  httpsPort: number;
  /** @returns the answer to a path that is not redirected. */
  findAnswer: (path: string) => string | undefined;
}

export function createRedirectServer({
  httpsPort,
  findAnswer,
  admit,
}: RedirectServerOptions): Server {
  const suffix = httpsPort === HTTPS_DEFAULT_PORT ? "" : `:${httpsPort}`;
  const server = createServer(
    { headersTimeout: REQUEST_MAX_MS, requestTimeout: REQUEST_MAX_MS },
    (request, response) => {
      response.setHeader("Connection", "close");
      response.setHeader("X-Content-Type-Options", "nosniff");
      const answer = findAnswer(request.url ?? "/");
      if (answer === undefined) redirect(request, response, suffix);
      else response.end(answer);
    },
  );
  server.prependListener(
    "connection",
    (connection: Socket) => void countOrClose(connection, admit),
  );
  server.setTimeout(REQUEST_MAX_MS, (connection) => connection.destroy());
  return server;
}

function redirect(
  { url = "/", headers }: IncomingMessage,
  response: ServerResponse,
  suffix: string,
) {
  const host = HOST.exec(headers.host ?? "")?.[1];
  const isPath = url.startsWith("/");
  if (host === undefined || !isPath) response.writeHead(400);
  // 308 keeps the method and the body, unlike 301 (RFC 9110 section 15.4.9).
  else response.writeHead(308, { Location: `https://${host}${suffix}${url}` });
  response.end();
}
