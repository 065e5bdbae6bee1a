/**
 * `/v2`, the WebSocket mode of Neon's driver: PostgreSQL's own protocol, on a connection that is lent from
 * a pool. The gateway lets the client in by itself, so that no new connection has to be made, and gives
 * the connection back in the state in which it took it.
 */
import { once } from "node:events";
import type { Duplex } from "node:stream";
import type pg from "pg";
import { createWebSocketStream, type WebSocket } from "ws";
import { messageOf } from "../failure.ts";
import type { CheckSecret } from "./answer.ts";
import type { Backend } from "./backend.ts";
import {
  ENCRYPTION_REFUSED,
  fatalError,
  MessageScanner,
  PASSWORD_WANTED,
  readPassword,
  readStartup,
  TYPE,
  welcome,
} from "./messages.ts";

const GATEWAY_STARTUP_MAX_MS = 10_000;
/** Answers of PostgreSQL that wait for a slow client, before PostgreSQL itself has to. */
const GATEWAY_BACKLOG_MAX_BYTES = 1024 * 1024;

export async function serveSession(
  socket: WebSocket,
  pool: pg.Pool,
  isSecret: CheckSecret,
): Promise<void> {
  const client = createWebSocketStream(socket, {
    readableHighWaterMark: GATEWAY_BACKLOG_MAX_BYTES,
    writableHighWaterMark: GATEWAY_BACKLOG_MAX_BYTES,
  });
  // A client that vanishes is an error to the stream and nothing to us: the socket's 'close' follows.
  client.on("error", () => {});
  const gone = once(socket, "close").then(() => undefined);
  const refusal = await letIn(client, gone, isSecret);
  if (refusal) {
    client.end(refusal);
    return;
  }
  let backend: Backend & pg.PoolClient;
  try {
    backend = (await pool.connect()) as Backend & pg.PoolClient;
  } catch (error) {
    client.end(fatalError("53300", `no connection to the database: ${messageOf(error)}`));
    return;
  }
  const isSettled = await lend(backend, client, gone);
  client.end();
  await giveBack(backend, isSettled);
}

/**
 * Startup and password; what a client sends behind them without waiting stays in its stream.
 *
 * @returns what to say to a client that is not let in.
 */
async function letIn(
  client: Duplex,
  gone: Promise<void>,
  isSecret: CheckSecret,
): Promise<Buffer | undefined> {
  let received: Buffer = Buffer.alloc(0);
  let isStarted = false;
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
  const refuse = (code: string, reason: string) => resolve(fatalError(code, reason));

  const onData = (data: Buffer) => {
    received = Buffer.concat([received, data]);
    while (!isStarted) {
      const startup = readStartup(received);
      if (startup.kind === "incomplete") return;
      if (startup.kind === "unreadable") return refuse("08P01", "unreadable startup message");
      received = received.subarray(startup.bytes);
      isStarted = startup.kind === "startup";
      client.write(isStarted ? PASSWORD_WANTED : ENCRYPTION_REFUSED);
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
async function lend(backend: Backend, client: Duplex, gone: Promise<void>): Promise<boolean> {
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
      if (type === TYPE.terminate) {
        isCut ||= start < 0;
        end = Math.max(0, Math.min(end, start));
        leave();
      }
      if (start > end) return;
      const asks = type === TYPE.query || type === TYPE.sync || type === TYPE.functionCall;
      if (asks) unanswered += 1;
      if (type !== TYPE.terminate) isRoundOpen = !asks;
    });
    if (end > 0) pass(chunk.subarray(0, end), server, client);
  };
  const onAnswer = (chunk: Buffer) => {
    answers.scan(chunk, (type) => {
      if (type === TYPE.readyForQuery) unanswered -= 1;
    });
    pass(chunk, client, server);
  };
  const onServerLost = () => {
    isCut = true;
    leave();
  };

  server.on("data", onAnswer).on("close", onServerLost);
  client.on("data", onQuestion);
  client.write(welcome(backend.parameters));
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
function pass(chunk: Buffer, to: Duplex, from: Duplex): void {
  if (to.destroyed || to.write(chunk)) return;
  from.pause();
  to.once("drain", () => from.resume());
}

async function giveBack(backend: Backend & pg.PoolClient, isSettled: boolean): Promise<void> {
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
