/**
 * `/v2`, the WebSocket mode of Neon's driver: PostgreSQL's own protocol on a pooled connection. The gateway
 * authenticates the client itself, so that no new connection to PostgreSQL is needed, and resets the connection
 * before it returns to the pool.
 */
import type { Duplex } from "node:stream";
import { createWebSocketStream, type WebSocket } from "ws";
import { parseApplicationName } from "../../protocol/application-name.ts";
import { waitForClose } from "../../sockets/close-event.ts";
import type { VerifySecret } from "./secret.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import {
  type ConnectionPool,
  NoConnectionError,
  type PooledConnection,
} from "./connection-pool.ts";
import {
  ENCRYPTION_DECLINED,
  buildFatalError,
  MessageScanner,
  PASSWORD_REQUEST,
  readPassword,
  readStartup,
  MESSAGE_TYPE,
  SQLSTATE,
  buildAuthenticationOk,
} from "./postgres-protocol.ts";

const GATEWAY_STARTUP_MAX_MS = 10_000;
/** Limit of the responses that are buffered for a slow client. Beyond it the gateway stops reading from PostgreSQL. */
const GATEWAY_BACKLOG_MAX_BYTES = 1024 * 1024;

export interface SessionDeps {
  pool: ConnectionPool;
  verifySecret: VerifySecret;
}

export async function serveSession(
  socket: WebSocket,
  { pool, verifySecret }: SessionDeps,
): Promise<void> {
  const client = createWebSocketStream(socket, {
    readableHighWaterMark: GATEWAY_BACKLOG_MAX_BYTES,
    writableHighWaterMark: GATEWAY_BACKLOG_MAX_BYTES,
  });
  // A lost client is an error of the stream. It needs no handling here, because the socket's 'close' event follows.
  client.on("error", () => {});
  const closed = waitForClose(socket);
  const authenticated = await authenticate(client, closed, verifySecret);
  if ("rejection" in authenticated) {
    client.end(authenticated.rejection);
    return;
  }
  const { caller } = authenticated;
  try {
    await pool.use({ caller, disconnected: closed }, (connection) =>
      serveTransaction(connection, client, closed),
    );
  } catch (error) {
    if (!(error instanceof NoConnectionError)) throw error;
    // The error of PostgreSQL itself when no connection is free.
    client.end(buildFatalError(SQLSTATE.tooManyConnections, error.message));
  }
}

async function serveTransaction(
  connection: PooledConnection,
  client: Duplex,
  closed: Promise<void>,
): Promise<void> {
  const isIdle = await forwardMessages(connection, client, closed);
  client.end();
  await releaseConnection(connection, isIdle);
}

/**
 * Handles startup and password. Messages that the client has already sent after them stay in its stream.
 *
 * @returns the caller that causes the session, or the error message for a client that is rejected.
 */
async function authenticate(
  client: Duplex,
  closed: Promise<void>,
  verifySecret: VerifySecret,
): Promise<{ caller: string | undefined } | { rejection: Buffer }> {
  let received: Buffer = Buffer.alloc(0);
  let parameters: Map<string, string> | undefined;
  const { promise, resolve } = Promise.withResolvers<
    { caller: string | undefined } | { rejection: Buffer }
  >();
  const refuse = (code: string, reason: string) =>
    resolve({ rejection: buildFatalError(code, reason) });

  const onData = (data: Buffer) => {
    received = Buffer.concat([received, data]);
    while (!parameters) {
      const startup = readStartup(received);
      if (startup.kind === "incomplete") return;
      if (startup.kind === "unreadable")
        return refuse(SQLSTATE.protocolViolation, "unreadable startup message");
      received = received.subarray(startup.bytes);
      if (startup.kind === "startup") parameters = startup.parameters;
      client.write(parameters ? PASSWORD_REQUEST : ENCRYPTION_DECLINED);
    }
    const answer = readPassword(received);
    if (answer === undefined) return;
    if (answer === null) return refuse(SQLSTATE.protocolViolation, "a password was expected");
    if (!verifySecret(answer.password))
      return refuse(SQLSTATE.wrongPassword, "password authentication failed");
    client.pause();
    client.off("data", onData);
    client.unshift(received.subarray(answer.bytes));
    resolve({ caller: parseApplicationName(parameters.get("application_name") ?? "") });
  };
  void closed.then(() => refuse(SQLSTATE.connectionFailure, "the client closed the connection"));
  const timer = setTimeout(
    () => refuse(SQLSTATE.protocolViolation, "the client did not authenticate in time"),
    GATEWAY_STARTUP_MAX_MS,
  );
  client.on("data", onData);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    client.off("data", onData);
  }
}

/**
 * Forwards bytes in both directions until the client terminates the session or either connection closes.
 *
 * @returns whether the server has answered every request and no message is incomplete.
 */
async function forwardMessages(
  connection: PostgresConnection,
  client: Duplex,
  closed: Promise<void>,
): Promise<boolean> {
  const server = connection.borrowStream();
  const requests = new MessageScanner();
  const responses = new MessageScanner();
  /** Requests that PostgreSQL answers with a ReadyForQuery, minus those messages received. */
  let pendingResponses = 0;
  let isSyncPending = false;
  let isTruncated = false;
  const { promise: ended, resolve: endSession } = Promise.withResolvers<void>();

  const onRequest = (chunk: Buffer) => {
    let end = chunk.length;
    requests.scan(chunk, (type, start) => {
      if (type === MESSAGE_TYPE.terminate) {
        isTruncated ||= start < 0;
        end = Math.max(0, Math.min(end, start));
        endSession();
      }
      if (start > end) return;
      const expectsReady =
        type === MESSAGE_TYPE.query ||
        type === MESSAGE_TYPE.sync ||
        type === MESSAGE_TYPE.functionCall;
      if (expectsReady) pendingResponses += 1;
      if (type !== MESSAGE_TYPE.terminate) isSyncPending = !expectsReady;
    });
    if (end > 0) writeWithBackpressure(chunk.subarray(0, end), server, client);
  };
  const onResponse = (chunk: Buffer) => {
    responses.scan(chunk, (type) => {
      if (type === MESSAGE_TYPE.readyForQuery) pendingResponses -= 1;
    });
    writeWithBackpressure(chunk, client, server);
  };
  const onServerLost = () => {
    isTruncated = true;
    endSession();
  };

  server.on("data", onResponse).on("close", onServerLost);
  client.on("data", onRequest);
  client.write(buildAuthenticationOk(connection.parameters));
  if (server.destroyed) onServerLost();
  client.resume();
  await Promise.race([ended, closed]);
  client.off("data", onRequest);
  server.off("data", onResponse).off("close", onServerLost);
  client.resume();
  server.resume();
  return (
    !isTruncated &&
    pendingResponses === 0 &&
    !isSyncPending &&
    requests.isAtBoundary &&
    responses.isAtBoundary
  );
}

/** Applies backpressure: stops reading from one side until the other has taken the chunk. */
function writeWithBackpressure(chunk: Buffer, to: Duplex, from: Duplex): void {
  if (to.destroyed || to.write(chunk)) return;
  from.pause();
  to.once("drain", () => from.resume());
}

async function releaseConnection(connection: PooledConnection, isIdle: boolean): Promise<void> {
  if (!isIdle) {
    // A response is pending: close the connection, so that PostgreSQL rolls back an open transaction.
    connection.release(true);
    return;
  }
  connection.returnStream();
  try {
    await connection.reset();
    connection.release();
  } catch {
    connection.release(true);
  }
}
