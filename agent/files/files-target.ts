/** A file or directory as the target of a tunnel, served inside this process without a port. */
import { existsSync, realpathSync, statSync } from "node:fs";
import type { Server } from "node:http";
import { join, resolve } from "node:path";
import { duplexPair } from "node:stream";
import { fileURLToPath } from "node:url";
import { Pool, type buildConnector, type Dispatcher } from "undici";
import { headerPairs } from "../../shared/raw-headers.ts";
import { rejectEmpty, UsageError } from "../options.ts";
import { ORIGIN_CONNECTIONS_MAX } from "../limits.ts";
import { isSocket, parseUnixSocket } from "../local-server/unix-socket.ts";
import {
  createLocalTarget,
  createSocketTarget,
  describeInvalidAddress,
  findOriginWithoutPath,
  parseTarget,
  type LocalDispatcher,
  type Target,
} from "../origin/target.ts";
import { parseTcpTarget } from "../tcp/tcp-target.ts";
import { INDEX } from "./directory.ts";
import type { SharedFiles } from "./file-server.ts";
import { PROGRAM } from "../program.ts";

/** undici writes these headers itself. A handshake for a WebSocket has them, and is answered like any request. */
const CONNECTION_HEADERS = new Set(["connection", "upgrade"]);

interface TargetOptions {
  directoryListing?: boolean | undefined;
  baseDirectory?: string | undefined;
}

/**
 * Finds out what a tunnel is to share: `3000`, `host:3000`, `https://host:8443`, `unix:/run/app.sock`, `./public`,
 * `file:///srv/site`.
 * An existing file or directory takes precedence over a host of the same name, which can still be written as a URL.
 * @param options.baseDirectory where relative paths start. Default: the current directory.
 * @throws UsageError when it is none of these.
 */
export function findTarget(text: string, options: TargetOptions = {}): Target {
  const { baseDirectory } = options;
  // Without a path, `file:` is the root directory.
  rejectEmpty(text.replace(/^file:(?:\/\/)?$/i, ""), "the local port");
  const socketPath = parseUnixSocket(text, baseDirectory);
  if (socketPath !== null) return rejectListing(createSocketTarget(socketPath), options);
  const given = parseFilePath(text);
  const path =
    given === null || baseDirectory === undefined ? given : resolve(baseDirectory, given);
  const shared = path === null ? null : findSharedFiles(path);
  if (shared) {
    if (options.directoryListing && shared.kind === "file")
      throw new UsageError(`${text} is a file; --directory-listing needs a directory`);
    const files = { ...shared, hasListing: options.directoryListing ?? false };
    const target = createLocalTarget(files.path, () => new FilesDispatcher(files));
    return { ...target, warning: describeMissingIndex(files) };
  }
  if (path !== null && isSocket(resolve(path)))
    throw new UsageError(`${path} is a socket; use unix:${path}`);
  if (/^file:|^\.{0,2}[/\\]|^[a-z]:\\/i.test(text))
    throw new UsageError(`there is no file or directory ${path ?? text}`);
  const target = parseTarget(text);
  if (!target) throw new UsageError(describeInvalidTarget(text));
  return rejectListing(target, options);
}

/** @throws UsageError for a server whose directory is to be listed. */
function rejectListing(server: Target, { directoryListing }: TargetOptions): Target {
  if (directoryListing)
    throw new UsageError("--directory-listing needs a directory instead of a server");
  return server;
}

function describeMissingIndex({ path, kind, hasListing }: SharedFiles): string | undefined {
  if (kind === "file" || hasListing || existsSync(join(path, INDEX))) return undefined;
  return `${path} has no ${INDEX}, so visitors of / get 404; --directory-listing shows its files instead`;
}

function describeInvalidTarget(text: string): string {
  const tcp = /^tcp:/i.test(text) ? parseTcpTarget(text) : null;
  if (tcp) {
    const address = tcp.host === "localhost" ? String(tcp.port) : tcp.text;
    return `${text} is not an HTTP server; use \`${PROGRAM} tcp ${address}\`, or protocol: tcp in underpass.yml`;
  }
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text) ?? [];
  if (scheme !== undefined && !/^https?$/i.test(scheme))
    return `${text} has the scheme ${scheme}; use http, https or file, or \`${PROGRAM} tcp\``;
  const server = findOriginWithoutPath(text);
  return server === null
    ? describeInvalidAddress(text, "port, host:port, http(s) URL, unix:path, file or directory")
    : `${text} has a path, which the visitor chooses; use ${server}`;
}

/** @returns null for a number and for URLs of other schemes than `file:`. As in a shell, `file:./site` is a relative path. */
export function parseFilePath(
  text: string,
  isWindows = process.platform === "win32",
): string | null {
  const [, relativePath] = /^file:(?![/\\])(.+)/i.exec(text) ?? [];
  if (relativePath !== undefined) return relativePath;
  if (/^file:/i.test(text)) {
    try {
      return fileURLToPath(text, { windows: isWindows });
    } catch {
      // Such as a host name on another system than Windows.
      return null;
    }
  }
  return /^\d+$/.test(text) || text.includes("://") ? null : text;
}

function findSharedFiles(path: string): Omit<SharedFiles, "hasListing"> | null {
  try {
    const real = realpathSync(resolve(path));
    const found = statSync(real);
    if (found.isDirectory()) return { path: real, kind: "directory" };
    return found.isFile() ? { path: real, kind: "file" } : null;
  } catch {
    return null;
  }
}

/** Connects requests to the file server by pairs of streams, so that no other program of the machine can reach it. */
class FilesDispatcher implements LocalDispatcher {
  readonly #pool: Pool;

  constructor(shared: SharedFiles) {
    let server: Promise<Server> | undefined;
    const connect: buildConnector.connector = (_options, callback) => {
      // Its table of file types takes 2 MiB, which agents of other targets do not need.
      server ??= import("./file-server.ts").then((module) => module.createFileServer(shared));
      const [near, far] = duplexPair();
      // Node.js 20 does not do it, and what the visitor no longer waits for would go on.
      near.once("close", () => far.destroy());
      server.then(
        (running) => {
          running.emit("connection", far);
          callback(null, near as never);
        },
        (error: Error) => callback(error, null),
      );
    };
    this.#pool = new Pool("http://localhost", {
      connect,
      connections: ORIGIN_CONNECTIONS_MAX,
      pipelining: 1,
      bodyTimeout: 0,
    });
  }

  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const headers: string[] = [];
    for (const [name, value] of headerPairs(request.headers as string[]))
      if (!CONNECTION_HEADERS.has(name)) headers.push(name, value);
    this.#pool.dispatch({ ...request, headers }, handler);
  }

  destroy(): Promise<void> {
    return this.#pool.destroy();
  }
}
