/** Corrects undici's parser of responses, which refuses some that local servers may send. */
import type { Socket } from "node:net";
import type { buildConnector } from "undici";

/** undici's parser of responses. */
interface Parser {
  /** Whether the response waits. */
  paused: boolean;
  /** null between two responses. */
  statusCode: number | null;
  /** The value of the response's header; empty without one. */
  contentLength: string;
  shouldKeepAlive: boolean;
  resume(): void;
  /** Called at the end of each response's head. */
  onHeadersComplete(status: number, isUpgrade: boolean, shouldKeepAlive: boolean): number;
  llhttp: { llhttp_resume(parser: unknown): void };
  /** The parser in `llhttp`. */
  ptr: unknown;
}

/** For the connections of undici's pools only: other clients read their sockets in another way. */
export function correctParsers(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result;
      // undici has not got the socket yet, so its own listeners come later.
      if (socket) {
        acceptHeads(socket);
        completePausedResponse(socket);
      }
      callback(...result);
    });
}

/**
 * Accepts a 100 that was not asked for (RFC 9110 §15.2), which undici takes for an error, and a 304 with the `Content-Length`
 * of the response that it stands for (RFC 9110 §8.6), whose body undici would miss.
 */
function acceptHeads(socket: Socket): void {
  socket.once("readable", () => {
    const parser = findParser(socket);
    if (!parser) return;
    const complete = parser.onHeadersComplete.bind(parser);
    parser.onHeadersComplete = (status, isUpgrade, shouldKeepAlive) => {
      if (status === 204 || status === 304) parser.contentLength = "";
      // undici ignores all other interim responses.
      return complete(status === 100 ? 102 : status, isUpgrade, shouldKeepAlive);
    };
  });
}

/**
 * Lets a server close its connection while its response waits for a slow visitor. undici 7 asserts then that the response does
 * not wait, and the error would end the agent (https://github.com/nodejs/undici/issues/5360, fixed in undici 8 only, which
 * requires a newer Node.js than the agent).
 */
function completePausedResponse(socket: Socket): void {
  socket.once("end", () => {
    const parser = findParser(socket);
    if (!parser?.paused || parser.statusCode === null || parser.shouldKeepAlive) return;
    // Everything that the server has sent was passed on before, so that nothing but the end of the response follows.
    parser.resume();
    if (!parser.paused) return;
    // A response without a length waits again at its last byte.
    parser.llhttp.llhttp_resume(parser.ptr);
    parser.paused = false;
  });
}

/** undici keeps the parser at the socket, under a symbol of its own. */
function findParser(socket: Socket): Parser | undefined {
  const key = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === "parser",
  );
  return key && ((socket as unknown as Record<symbol, Parser | null>)[key] ?? undefined);
}
