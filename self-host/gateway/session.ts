/**
 * `/v2`, the WebSocket mode of Neon's driver: PostgreSQL's own protocol, on a connection that is lent from
 * a pool. The gateway lets the client in by itself, so that no new connection has to be made, and gives
 * the connection back in the state in which it took it.
 */
import { once } from "node:events";
import type { Duplex } from "node:stream";
import type pg from "pg";
import { createWebSocketStream, type WebSocket } from "ws";
import { getErrorMessage } from "../errors.ts";
import type { VerifySecret } from "./response.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import {
  ENCRYPTION_DECLINED,
  buildFatalError,
  MessageScanner,
  PASSWORD_REQUEST,
  readPassword,
  readStartup,
  MESSAGE_TYPE,
  buildAuthenticationOk,
} from "./messages.ts";

const GATEWAY_STARTUP_MAX_MS = 10_000;
/** Answers of PostgreSQL that wait for a slow client, before PostgreSQL itself has to. */
const GATEWAY_BACKLOG_MAX_BYTES = 1024 * 1024;

export async function serveSession(
  socket: WebSocket,
  pool: pg.Pool,
  isSecret: VerifySecret,
): Promise<void> {
  const client = createWebSocketStream(socket, {
    readableHighWaterMark: GATEWAY_BACKLOG_MAX_BYTES,
    writableHighWaterMark: GATEWAY_BACKLOG_MAX_BYTES,
  });
  // A client that vanishes is an error to the stream and nothing to us: the socket's 'close' follows.
  client.on("error", () => {});
  const gone = once(socket, "close").then(() => undefined);
  const refusal = await authenticate(client, gone, isSecret);
  if (refusal) {
    client.end(refusal);
    return;
  }
  let backend: PostgresConnection & pg.PoolClient;
  try {
    backend = (await pool.connect()) as PostgresConnection & pg.PoolClient;
  } catch (error) {
    client.end(buildFatalError("53300", `no connection to the database: ${getErrorMessage(error)}`));
    return;
  }
  const isSettled = await forwardMessages(backend, client, gone);
  client.end();
  await releaseConnection(backend, isSettled);
}

/**
 * Startup and password; what a client sends behind them without waiting stays in its stream.
 *
 * @returns what to say to a client that is not let in.
 */
async function authenticate(
  client: Duplex,
  gone: Promise<void>,
  isSecret: VerifySecret,
): Promise<Buffer | undefined> {
  let received: Buffer = Buffer.alloc(0);
  let isStarted = false;
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
  const refuse = (code: string, reason: string) => resolve(buildFatalError(code, reason));

  const onData = (data: Buffer) => {
    received = Buffer.concat([received, data]);
    while (!isStarted) {
      const startup = readStartup(received);
      if (startup.kind === "incomplete") return;
      if (startup.kind === "unreadable") return refuse("08P01", "unreadable startup message");
      received = received.subarray(startup.bytes);
      isStarted = startup.kind === "startup";
      client.write(isStarted ? PASSWORD_REQUEST : ENCRYPTION_DECLINED);
    }
    const answer = readPassword(received);
    if (answer === undefined) return;
    if (answer === null) return refuse("08P01", "a password was expected");
    if (!isSecret(answer.password)) return refuse("28P01", "password authentication failed");
    client.pause();
    client.off("data", onData);
    client.unshift(received.subarray(answer.bytes));
    resolve(undefined);
  };
  void gone.then(() => refuse("08006", "the client left"));
  const timer = setTimeout(
    () => refuse("08P01", "the client took too long"),
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
 * Carries bytes between the two until the client says goodbye or either is gone.
 *
 * @returns whether the server has answered everything that it was asked, and nothing was cut.
 */
async function forwardMessages(backend: PostgresConnection, client: Duplex, gone: Promise<void>): Promise<boolean> {
  const server = backend.lend();
  const questions = new MessageScanner();
  const answers = new MessageScanner();
  /** Messages that ask for a ReadyForQuery, minus those that came. */
  let unanswered = 0;
  let isRoundOpen = false;
  let isCut = false;
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();

  const onQuestion = (chunk: Buffer) => {
    let end = chunk.length;
    questions.scan(chunk, (type, start) => {
      if (type === MESSAGE_TYPE.terminate) {
        isCut ||= start < 0;
        end = Math.max(0, Math.min(end, start));
        leave();
      }
      if (start > end) return;
      const asks = type === MESSAGE_TYPE.query || type === MESSAGE_TYPE.sync || type === MESSAGE_TYPE.functionCall;
      if (asks) unanswered += 1;
      if (type !== MESSAGE_TYPE.terminate) isRoundOpen = !asks;
    });
    if (end > 0) writeWithBackpressure(chunk.subarray(0, end), server, client);
  };
  const onAnswer = (chunk: Buffer) => {
    answers.scan(chunk, (type) => {
      if (type === MESSAGE_TYPE.readyForQuery) unanswered -= 1;
    });
    writeWithBackpressure(chunk, client, server);
  };
  const onServerLost = () => {
    isCut = true;
    leave();
  };

  server.on("data", onAnswer).on("close", onServerLost);
  client.on("data", onQuestion);
  client.write(buildAuthenticationOk(backend.parameters));
  if (server.destroyed) onServerLost();
  client.resume();
  await Promise.race([left, gone]);
  client.off("data", onQuestion);
  server.off("data", onAnswer).off("close", onServerLost);
  client.resume();
  server.resume();
  return (
    !isCut && unanswered === 0 && !isRoundOpen && questions.isAtBoundary && answers.isAtBoundary
  );
}

/** The one who reads slowly holds up the one who writes. */
function writeWithBackpressure(chunk: Buffer, to: Duplex, from: Duplex): void {
  if (to.destroyed || to.write(chunk)) return;
  from.pause();
  to.once("drain", () => from.resume());
}

async function releaseConnection(backend: PostgresConnection & pg.PoolClient, isSettled: boolean): Promise<void> {
  if (!isSettled) {
    // Mid-answer: PostgreSQL itself rolls back what a lost connection had begun.
    backend.release(true);
    return;
  }
  backend.takeBack();
  try {
    await backend.query("rollback");
    await backend.query("discard all");
    backend.release();
  } catch {
    backend.release(true);
  }
}
