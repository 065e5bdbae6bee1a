/** A Unix socket as the address of a local server: `unix:/run/app.sock`. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError } from "../options.ts";

/** What `sun_path` holds besides its final NUL (unix(7)); on macOS and the BSDs it is shorter. */
const PATH_MAX_BYTES = process.platform === "linux" ? 107 : 103;
const PREFIX = /^unix:/i;

/**
 * Parses `unix:/run/app.sock`, `unix:///run/app.sock`, `unix:./app.sock`. The server need not run yet.
 * @param baseDirectory where relative paths start. Default: the current directory.
 * @returns the socket's absolute path; null for another kind of address.
 * @throws UsageError when no server can listen there.
 */
export function parseUnixSocket(
  text: string,
  baseDirectory = process.cwd(),
  platform = process.platform,
): string | null {
  const address = text.trim();
  if (!PREFIX.test(address)) return null;
  if (platform === "win32")
    throw new UsageError(`${address} can't be used on Windows; use a port of the local server`);
  const given = address.replace(PREFIX, "");
  if (/^\/*$/.test(given) || given.includes("\0"))
    throw new UsageError("unix: needs the path of a socket, for example unix:/run/app.sock");
  const path = resolve(baseDirectory, given);
  const bytes = Buffer.byteLength(path);
  if (bytes > PATH_MAX_BYTES) {
    const limit = `the path of a Unix socket has at most ${PATH_MAX_BYTES} bytes`;
    throw new UsageError(`${limit}, and ${path} has ${bytes}; use a shorter path`);
  }
  if (isSocket(path) === false) throw new UsageError(`${path} is not a socket`);
  return path;
}

/** @returns undefined when there is no such file, or this user may not see it. */
export function isSocket(path: string): boolean | undefined {
  try {
    return statSync(path).isSocket();
  } catch {
    return undefined;
  }
}

/** @param origin `unix:` and the path. @returns why a connection failed, and what the user can do; undefined for other codes. */
export function explainSocketError(
  code: string,
  origin: string,
): { problem: string; advice: string } | undefined {
  switch (code) {
    case "ECONNREFUSED":
      return {
        problem: `nothing listens at ${origin}`,
        advice: "start the local server, or name another socket",
      };
    case "ENOENT":
      return {
        problem: `there is no socket ${origin.replace(PREFIX, "")}`,
        advice: "start the local server, or name another socket",
      };
    case "EACCES":
      return {
        problem: `this user may not connect to ${origin}`,
        advice: "allow it to write to the socket, and to enter its directories",
      };
    case "EAGAIN":
      return {
        problem: `the queue of ${origin} is full`,
        advice: "let the local server accept connections faster, or raise its backlog",
      };
    default:
      return undefined;
  }
}
