/**
 * Lets a server close its connection while its response waits for a slow visitor. undici 7 asserts then that the response does
 * not wait, and the error would end the agent (https://github.com/nodejs/undici/issues/5360, fixed in undici 8 only, which
 * requires a newer Node.js than the agent).
 */
import type { Socket } from "node:net";

/** undici's parser of responses. */
interface Parser {
  /** Whether the response waits. */
  paused: boolean;
  /** null between two responses. */
  statusCode: number | null;
  shouldKeepAlive: boolean;
  resume(): void;
  llhttp: { llhttp_resume(parser: unknown): void };
  /** The parser in `llhttp`. */
  ptr: unknown;
}

/** @param socket a new connection, which undici has not got yet: its own listener must come later. */
export function completePausedResponse(socket: Socket): void {
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
