/**
 * The gateway: gives the Worker access to PostgreSQL and mail, and hashes passwords for it. It speaks the protocol of Neon's
 * driver: `POST /sql` for single queries, a WebSocket on `/v2` for transactions. It listens on a socket that only its owner
 * can open, which takes less CPU time than a port, or on a port of the loopback address. Every caller must send the secret.
 */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";
import { Argon2 } from "./argon2.ts";
import { type GatewayResponse, buildErrorResponse, buildFatalErrorResponse } from "./response.ts";
import { createSecretVerifier, type VerifySecret } from "./secret.ts";
import { SQLSTATE } from "./postgres-protocol.ts";
import { ConnectionPool, type PoolUsage } from "./connection-pool.ts";
import { createMailer } from "./mail.ts";
import { serveSession, type SessionDeps } from "./session.ts";
import { handleSql } from "./sql.ts";
import { parseApplicationName } from "../../protocol/application-name.ts";
import type { SmtpServer } from "../../workers/config/smtp-server.ts";
import type { Log } from "../log.ts";
import { parseBearerSecret } from "../../shared/bearer-token.ts";
import { getErrorMessage } from "../../shared/error-message.ts";
import { waitForClose } from "../../sockets/close-event.ts";
import { createServer } from "../../sockets/node-http.ts";

/** Connections to PostgreSQL for single queries, and for transactions. */
export const GATEWAY_QUERY_CONNECTIONS = 10;
export const GATEWAY_SESSION_CONNECTIONS = 10;
/** After a restart of the server, each agent of an organization causes a query at the same time. */
const GATEWAY_QUERIES_WAITING_MAX = 20_000;
const GATEWAY_SESSIONS_WAITING_MAX = 1_024;
const GATEWAY_REQUEST_MAX_BYTES = 10 * 1024 * 1024;

interface GatewayOptions {
  /** undefined: listens on a free port. */
  socketPath: string | undefined;
  databaseUrl: string;
  secret: string;
  /** Directory for mail when no SMTP server is configured. */
  mailDir: string;
  smtpServer: SmtpServer | undefined;
  log: Log;
}

export interface Gateway {
  /** `unix:<path>` or `127.0.0.1:<port>` */
  address: string;
  /** The connection string for the Worker: it contains the gateway's secret, not the database's password. */
  databaseUrl: string;
  /** The use of the connections to PostgreSQL: of those for single queries, and of those for transactions. */
  pools: Record<"queries" | "sessions", () => PoolUsage>;
  close(): Promise<void>;
}

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { log, secret } = options;
  const queries = new ConnectionPool({
    ...options,
    connections: GATEWAY_QUERY_CONNECTIONS,
    waitingMax: GATEWAY_QUERIES_WAITING_MAX,
  });
  const sessions = new ConnectionPool({
    ...options,
    connections: GATEWAY_SESSION_CONNECTIONS,
    waitingMax: GATEWAY_SESSIONS_WAITING_MAX,
  });
  const mailer = createMailer(options);
  const argon2 = new Argon2();
  const verifySecret = createSecretVerifier(secret);
  const databaseUrl = `postgresql://underpass:${secret}@gateway.underpass.internal/underpass`;
  const verifyDatabaseUrl = createSecretVerifier(databaseUrl);

  const services: Services = { queries, mailer, argon2, verifySecret, verifyDatabaseUrl };
  const server = createServer((request, response) => answer(services, request, response, log));
  // The Worker keeps its connections open for as long as it runs.
  server.keepAliveTimeout = 0;
  const sockets = acceptSessions(server, { pool: sessions, verifySecret }, log);

  return {
    address: await listen(server, options.socketPath),
    databaseUrl,
    pools: {
      queries: () => queries.usage,
      sessions: () => sessions.usage,
    },
    async close() {
      for (const client of sockets.clients) client.terminate();
      server.close();
      server.closeAllConnections();
      mailer.close();
      await Promise.all([queries.close(), sessions.close(), argon2.close()]);
    },
  };
}

/** The parts that answer requests. */
interface Services {
  queries: ConnectionPool;
  mailer: ReturnType<typeof createMailer>;
  argon2: Argon2;
  verifySecret: VerifySecret;
  verifyDatabaseUrl: VerifySecret;
}

function answer(
  services: Services,
  request: IncomingMessage,
  response: ServerResponse,
  log: Log,
): void {
  const disconnected = waitForClose(response);
  void handle(services, request, disconnected).then(
    (result) => sendResponse(response, result),
    (error: unknown) => {
      log.error(
        `gateway: the Worker's request ${request.url} failed and is answered with 503: ${getErrorMessage(error)}`,
      );
      sendResponse(response, buildErrorResponse(503, "the gateway can't handle the request now"));
    },
  );
}

async function handle(
  services: Services,
  request: IncomingMessage,
  disconnected: Promise<void>,
): Promise<GatewayResponse> {
  const connectionString = String(request.headers["neon-connection-string"]);
  if (request.method !== "POST") return buildErrorResponse(404, "not found");
  switch (request.url) {
    case "/sql":
      if (!services.verifyDatabaseUrl(removeQuery(connectionString))) return WRONG_SECRET_RESPONSE;
      break;
    case "/mail":
    case "/argon2":
      if (!services.verifySecret(parseBearerSecret(request.headers.authorization) ?? "")) {
        return { ...WRONG_SECRET_RESPONSE, status: 401 };
      }
      break;
    default:
      return buildErrorResponse(404, "not found");
  }
  const body = await readBody(request);
  if (body === undefined) {
    const tooLarge = buildErrorResponse(413, "the request is too large");
    return { ...tooLarge, headers: { connection: "close" } };
  }
  switch (request.url) {
    case "/sql": {
      const source = { caller: findCaller(connectionString), disconnected };
      return handleSql(services.queries, source, request.headers, body);
    }
    case "/mail":
      return services.mailer.handle(body);
    default:
      return services.argon2.handle(body);
  }
}

/** Serves the WebSockets of transactions. */
function acceptSessions(server: Server, deps: SessionDeps, log: Log): WebSocketServer {
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: GATEWAY_REQUEST_MAX_BYTES,
  });
  server.on("upgrade", (request, socket, head) => {
    if (removeQuery(request.url) !== "/v2") {
      socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
      return;
    }
    sockets.handleUpgrade(request, socket, head, (client) => {
      serveSession(client, deps).catch((error: unknown) => {
        log.error(`gateway: a database session of the Worker was ended: ${getErrorMessage(error)}`);
        client.terminate();
      });
    });
  });
  return sockets;
}

async function listen(server: Server, socketPath: string | undefined): Promise<string> {
  if (socketPath === undefined) server.listen(0, "127.0.0.1");
  else {
    // A killed server leaves its socket behind, and the next one could not bind to its path.
    await rm(socketPath, { force: true });
    server.listen(socketPath);
  }
  await once(server, "listening");
  const address = server.address() as AddressInfo | string;
  return typeof address === "string" ? `unix:${address}` : `127.0.0.1:${address.port}`;
}

function removeQuery(url: string | undefined): string {
  return String(url).split("?", 1)[0]!;
}

/** @returns the caller that causes the query, as `formatApplicationName` has written it. */
function findCaller(connectionString: string): string | undefined {
  const parameters = connectionString.slice(connectionString.indexOf("?") + 1);
  return parseApplicationName(new URLSearchParams(parameters).get("application_name") ?? "");
}

/** @returns undefined when the body is too large; the rest of it is not read. */
function readBody(request: IncomingMessage): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on("error", reject);
  request.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= GATEWAY_REQUEST_MAX_BYTES) {
      chunks.push(chunk);
      return;
    }
    request.pause();
    resolve(undefined);
  });
  return promise;
}

function sendResponse(response: ServerResponse, { status, body, headers }: GatewayResponse): void {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

const WRONG_SECRET_RESPONSE = buildFatalErrorResponse(
  SQLSTATE.wrongPassword,
  "password authentication failed",
);
